// SPDX-License-Identifier: Apache-2.0
//! Reads the modules of a crate from its source files: the definitions, imports and mentions of each.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ImplItem, Item, ItemImpl, ItemMod, Meta, Token, Type, UseTree, Visibility};

/// Index of a module in [`Crate::modules`].
pub type Id = usize;

/// Index of the crate's outermost module.
pub const ROOT: Id = 0;

/// Modules of one crate.
pub struct Crate {
    pub modules: Vec<Module>,
}

/// Contents of one module, without code compiled only for tests.
#[derive(Default)]
pub struct Module {
    /// Full path, beginning with the crate's name.
    pub name: String,
    pub parent: Id,
    pub children: BTreeMap<String, Id>,
    /// Names of items defined by this module itself.
    pub items: BTreeSet<String>,
    pub imports: Vec<Import>,
    /// Paths in the module's code, with their places.
    pub mentions: Vec<Mention>,
    /// Methods and functions in `impl` blocks of types: path of the type, and name.
    pub methods: Vec<(Vec<String>, String)>,
}

/// Name imported by a `use` declaration.
pub struct Import {
    /// Name in this module; `*` for all names of the module at `path`.
    pub name: String,
    pub path: Vec<String>,
    /// Set for a re-export: other modules may import the name from here.
    pub exported: bool,
    pub place: Place,
}

/// Path in code.
pub struct Mention {
    pub path: Vec<String>,
    pub place: Place,
}

/// Line of a source file.
#[derive(Clone)]
pub struct Place {
    pub file: String,
    pub line: usize,
}

impl Crate {
    /// Reads the crate `name` whose outermost file is `folder/src/lib.rs`. Places are relative to `folder`.
    pub fn read(name: &str, folder: &Path) -> Self {
        let mut this = Self::empty(name);
        let source = folder.join("src");
        this.read_file(ROOT, &source.join("lib.rs"), &source, folder);
        this
    }

    /// Reads a crate from one text that contains its modules.
    pub fn parse(name: &str, text: &str) -> Self {
        let mut this = Self::empty(name);
        let file = syn::parse_file(text).unwrap_or_else(|error| panic!("{error}"));
        let here = File { name: "lib.rs".into(), path: "lib.rs".into(), children: "".into(), base: "".into() };
        this.read_items(ROOT, &file.items, &here);
        this
    }

    fn empty(name: &str) -> Self {
        Self { modules: vec![Module { name: name.to_owned(), ..Module::default() }] }
    }

    fn read_file(&mut self, id: Id, path: &Path, children: &Path, base: &Path) {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let name = path.strip_prefix(base).unwrap_or(path).display().to_string();
        let here = File { name, path: path.into(), children: children.into(), base: base.into() };
        self.read_items(id, &file.items, &here);
    }

    fn read_items(&mut self, id: Id, items: &[Item], file: &File) {
        for item in items {
            match item {
                Item::Mod(module) if !for_tests(&module.attrs) => self.read_module(id, module, file),
                Item::Mod(_) => {}
                _ => Reader { module: &mut self.modules[id], file: &file.name, this: None }.visit_item(item),
            }
        }
    }

    fn read_module(&mut self, parent: Id, module: &ItemMod, file: &File) {
        let name = module.ident.to_string();
        // Two files for one name, chosen by the platform, are read into one module.
        let id = self.modules[parent].children.get(&name).copied().unwrap_or(self.modules.len());
        if id == self.modules.len() {
            let name = format!("{}::{name}", self.modules[parent].name);
            self.modules.push(Module { name, parent, ..Module::default() });
        }
        self.modules[parent].children.insert(name.clone(), id);
        let children = file.children.join(&name);
        if let Some((_, items)) = &module.content {
            self.read_items(id, items, &File { children, ..file.clone() });
        } else {
            let candidates = match path_attribute(&module.attrs) {
                Some(path) => vec![file.path.with_file_name(path)],
                None => vec![children.with_extension("rs"), children.join("mod.rs")],
            };
            let found = candidates.iter().find(|path| path.is_file());
            let path = found.unwrap_or_else(|| panic!("{}: no file for module {name}", file.name));
            self.read_file(id, path, &children, &file.base);
        }
    }
}

/// File being read.
#[derive(Clone)]
struct File {
    /// Path as it appears in places.
    name: String,
    path: PathBuf,
    /// Folder with the files of child modules.
    children: PathBuf,
    /// Base folder of places.
    base: PathBuf,
}

/// Collects the contents of one module.
struct Reader<'a> {
    module: &'a mut Module,
    file: &'a str,
    /// Type of the enclosing `impl` block.
    this: Option<Vec<String>>,
}

impl Reader<'_> {
    fn place(&self, span: Span) -> Place {
        Place { file: self.file.to_owned(), line: span.start().line }
    }

    fn mention(&mut self, path: Vec<String>, span: Span) {
        let place = self.place(span);
        self.module.mentions.push(Mention { path, place });
    }

    /// Records the names imported by a `use` tree.
    fn import(&mut self, tree: &UseTree, before: &[String], exported: bool) {
        let extended = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        let (name, path, span) = match tree {
            UseTree::Path(path) => return self.import(&path.tree, &extended(&path.ident), exported),
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.import(tree, before, exported));
            }
            UseTree::Name(name) if name.ident == "self" => {
                (before.last().unwrap().clone(), before.to_vec(), name.ident.span())
            }
            UseTree::Name(name) => (name.ident.to_string(), extended(&name.ident), name.ident.span()),
            UseTree::Rename(name) if name.ident == "self" => {
                (name.rename.to_string(), before.to_vec(), name.ident.span())
            }
            UseTree::Rename(name) => (name.rename.to_string(), extended(&name.ident), name.ident.span()),
            UseTree::Glob(glob) => ("*".into(), before.to_vec(), glob.star_token.spans[0]),
        };
        let place = self.place(span);
        self.module.imports.push(Import { name, path, exported, place });
    }

    /// Records the paths in the text of a macro, whose grammar is unknown.
    fn scan(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut start = None;
        let mut colons = 0;
        for token in tokens.into_iter().map(Some).chain([None]) {
            match token {
                Some(TokenTree::Ident(ident)) if path.is_empty() || colons == 2 => {
                    start = start.or(Some(ident.span()));
                    path.push(ident.to_string());
                    colons = 0;
                    continue;
                }
                Some(TokenTree::Punct(punct)) if punct.as_char() == ':' && !path.is_empty() && colons < 2 => {
                    colons += 1;
                    continue;
                }
                _ => {}
            }
            if let Some(span) = start.take() {
                let path = std::mem::take(&mut path);
                if path.len() > 1 || is_type_name(&path[0]) {
                    self.mention(self.with_self_named(path), span);
                }
            }
            colons = 0;
            match token {
                Some(TokenTree::Ident(ident)) => {
                    start = Some(ident.span());
                    path.push(ident.to_string());
                }
                Some(TokenTree::Group(group)) => self.scan(group.stream()),
                _ => {}
            }
        }
    }

    fn with_self_named(&self, path: Vec<String>) -> Vec<String> {
        match &self.this {
            Some(this) if path[0] == "Self" => [&this[..], &path[1..]].concat(),
            _ => path,
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let (attributes, name) = match item {
            Item::Const(item) => (&item.attrs, Some(&item.ident)),
            Item::Enum(item) => (&item.attrs, Some(&item.ident)),
            Item::Fn(item) => (&item.attrs, Some(&item.sig.ident)),
            Item::Macro(item) => (&item.attrs, item.ident.as_ref()),
            Item::Static(item) => (&item.attrs, Some(&item.ident)),
            Item::Struct(item) => (&item.attrs, Some(&item.ident)),
            Item::Trait(item) => (&item.attrs, Some(&item.ident)),
            Item::TraitAlias(item) => (&item.attrs, Some(&item.ident)),
            Item::Type(item) => (&item.attrs, Some(&item.ident)),
            Item::Union(item) => (&item.attrs, Some(&item.ident)),
            Item::Impl(item) => (&item.attrs, None),
            Item::Use(item) => (&item.attrs, None),
            _ => return visit::visit_item(self, item),
        };
        if for_tests(attributes) {
            return;
        }
        self.module.items.extend(name.map(ToString::to_string));
        visit::visit_item(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.import(&item.tree, &[], !matches!(item.vis, Visibility::Inherited));
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let this = match &*item.self_ty {
            Type::Path(path) => Some(segments(&path.path)),
            _ => None,
        };
        if let (Some(this), None) = (&this, &item.trait_) {
            let functions = item.items.iter().filter_map(|item| match item {
                ImplItem::Fn(function) if !for_tests(&function.attrs) => Some(function.sig.ident.to_string()),
                _ => None,
            });
            self.module.methods.extend(functions.map(|name| (this.clone(), name)));
        }
        let outer = std::mem::replace(&mut self.this, this);
        visit::visit_item_impl(self, item);
        self.this = outer;
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if !matches!(item, ImplItem::Fn(function) if for_tests(&function.attrs)) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names = segments(path);
        // One small word alone is a variable, or a function: see `visit_expr_call`.
        if names.len() > 1 || is_type_name(&names[0]) {
            self.mention(self.with_self_named(names), path.segments[0].ident.span());
        }
        visit::visit_path(self, path);
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if let Expr::Path(function) = &*call.func
            && let Some(name) = function.path.get_ident()
        {
            self.mention(vec![name.to_string()], name.span());
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if let (Expr::Path(receiver), Some(this)) = (&*call.receiver, &self.this)
            && receiver.path.is_ident("self")
        {
            self.mention([&this[..], &[call.method.to_string()]].concat(), call.method.span());
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let names = segments(&call.path);
        if names.len() > 1 {
            self.mention(names, call.path.segments[0].ident.span());
        }
        self.scan(call.tokens.clone());
    }

    // `pub(super)` is not a use of the parent.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

fn segments(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

/// Returns true if a name has the case of types and constants.
fn is_type_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase())
}

/// Returns true if an item with these attributes is compiled only for tests.
fn for_tests(attributes: &[Attribute]) -> bool {
    fn needs_test(condition: &Meta) -> bool {
        match condition {
            Meta::Path(path) => path.is_ident("test"),
            Meta::List(list) if list.path.is_ident("all") => {
                let parts = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
                parts.is_ok_and(|parts| parts.iter().any(needs_test))
            }
            _ => false,
        }
    }
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            list.parse_args::<Meta>().is_ok_and(|condition| needs_test(&condition))
        }
        meta => meta.path().is_ident("test"),
    })
}

fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    })
}
