// SPDX-License-Identifier: Apache-2.0
//! Uses between the modules of a crate, and the cycles among them.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;

use crate::source::{Crate, Id, Place, ROOT};

/// Graph with an edge for each pair of modules of which the first uses the second, and one place of that use.
pub struct Graph<'a> {
    modules: &'a Crate,
    uses: Vec<BTreeMap<Id, Place>>,
}

/// Target of a path, and the number of its names that were needed to find it.
enum Target {
    Module(Id, usize),
    /// An item, in the module that defines it.
    Item(Id, usize),
}

impl<'a> Graph<'a> {
    /// Resolves every mention and every import of a crate to the module that defines the item. A re-export is not a
    /// use, nor is the import of a module as a whole: a name used through that module is. A call of a method on `self`
    /// or through the type is a use of the module with the `impl` block.
    pub fn new(modules: &'a Crate) -> Self {
        let resolver = Resolver::new(modules);
        let mut uses = vec![BTreeMap::new(); modules.modules.len()];
        for (id, module) in modules.modules.iter().enumerate() {
            let imports = module.imports.iter().filter(|import| !import.exported && import.name != "*");
            let imports = imports.map(|import| (&import.path, &import.place));
            let mentions = module.mentions.iter().map(|mention| (&mention.path, &mention.place));
            for (path, place) in imports.chain(mentions) {
                if let Some(target) = resolver.definition(id, path)
                    && target != id
                {
                    uses[id].entry(target).or_insert_with(|| place.clone());
                }
            }
        }
        Self { modules, uses }
    }

    /// Returns the shortest cycle through each module on a cycle, by module name.
    pub fn circles(&self) -> BTreeMap<String, String> {
        let circle = |id: Id| Some((self.modules.modules[id].name.clone(), self.describe(&self.circle_through(id)?)));
        (0..self.uses.len()).filter_map(circle).collect()
    }

    fn circle_through(&self, id: Id) -> Option<Vec<Id>> {
        let mut came_from = BTreeMap::new();
        let mut queue = VecDeque::from([id]);
        while let Some(from) = queue.pop_front() {
            for &to in self.uses[from].keys() {
                if to == id {
                    let mut circle = vec![id, from];
                    while circle[circle.len() - 1] != id {
                        circle.push(came_from[&circle[circle.len() - 1]]);
                    }
                    circle.reverse();
                    return Some(circle);
                }
                came_from.entry(to).or_insert_with(|| {
                    queue.push_back(to);
                    from
                });
            }
        }
        None
    }

    fn describe(&self, circle: &[Id]) -> String {
        let names: Vec<&str> = circle.iter().map(|&id| &*self.modules.modules[id].name).collect();
        let mut text = names.join(" -> ");
        for pair in circle.windows(2) {
            let Place { file, line } = &self.uses[pair[0]][&pair[1]];
            write!(text, "\n    {file}:{line} uses {}", self.modules.modules[pair[1]].name).unwrap();
        }
        text
    }
}

struct Resolver<'a> {
    modules: &'a Crate,
    /// Module with the `impl` block, by module and name of the type and name of the method.
    methods: BTreeMap<(Id, String, String), Id>,
}

impl<'a> Resolver<'a> {
    fn new(modules: &'a Crate) -> Self {
        let mut this = Self { modules, methods: BTreeMap::new() };
        let mut methods = BTreeMap::new();
        for (id, module) in modules.modules.iter().enumerate() {
            for (path, method) in &module.methods {
                if let Some(Target::Item(home, length)) = this.resolve(id, path, 0) {
                    methods.insert((home, path[length - 1].clone(), method.clone()), id);
                }
            }
        }
        this.methods = methods;
        this
    }

    /// Returns the module that defines the target of a path in module `from`; `None` for other crates and local names.
    fn definition(&self, from: Id, path: &[String]) -> Option<Id> {
        match self.resolve(from, path, 0)? {
            Target::Item(home, length) => {
                let method = path
                    .get(length)
                    .and_then(|method| self.methods.get(&(home, path[length - 1].clone(), method.clone())).copied());
                Some(method.unwrap_or(home))
            }
            // A macro defines the name.
            Target::Module(home, length) => (length < path.len()).then_some(home),
        }
    }

    fn resolve(&self, from: Id, path: &[String], depth: usize) -> Option<Target> {
        let first = match &*path[0] {
            "crate" => Target::Module(ROOT, 1),
            "self" => Target::Module(from, 1),
            "super" => Target::Module(self.modules.modules[from].parent, 1),
            name => self.lookup(from, name, depth)?,
        };
        let Target::Module(mut module, mut length) = first else { return Some(first) };
        while length < path.len() {
            let next = match &*path[length] {
                "super" => Target::Module(self.modules.modules[module].parent, 1),
                name => match self.lookup(module, name, depth) {
                    Some(next) => next,
                    None => break,
                },
            };
            length += 1;
            match next {
                Target::Module(inner, _) => module = inner,
                Target::Item(home, _) => return Some(Target::Item(home, length)),
            }
        }
        Some(Target::Module(module, length))
    }

    /// Returns the meaning of one name in a module.
    fn lookup(&self, id: Id, name: &str, depth: usize) -> Option<Target> {
        // `use object;` names another crate and would be looked up in itself.
        if depth > 16 {
            return None;
        }
        let module = &self.modules.modules[id];
        if let Some(&child) = module.children.get(name) {
            return Some(Target::Module(child, 1));
        }
        if module.items.contains(name) {
            return Some(Target::Item(id, 1));
        }
        let named = module.imports.iter().filter(|import| import.name == name);
        let all = module.imports.iter().filter(|import| import.name == "*");
        let named = named.filter_map(|import| self.resolve(id, &import.path, depth + 1)).next();
        named
            .map(|target| match target {
                Target::Module(home, _) => Target::Module(home, 1),
                Target::Item(home, _) => Target::Item(home, 1),
            })
            .or_else(|| {
                all.filter_map(|import| match self.resolve(id, &import.path, depth + 1)? {
                    Target::Module(home, length) if length == import.path.len() && home != id => {
                        self.lookup(home, name, depth + 1)
                    }
                    _ => None,
                })
                .next()
            })
    }
}
