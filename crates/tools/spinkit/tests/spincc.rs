// SPDX-License-Identifier: Apache-2.0
//! `spincc` on the sources of `tests/spincc`, linked with a stub of libportals.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use abi::device::map;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SegmentFlags, elf};
use spincc::image::Image;
use tempfile::TempDir;

const KINDS: [&str; 2] = ["rv32imac", "rv32imafdc"];

fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap()
}

fn sources() -> PathBuf {
    home().join("tests/spincc")
}

/// Returns the folder of the stub library.
fn lib_dir() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("spincc-lib");
        std::fs::create_dir_all(&dir).unwrap();
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC"]).arg(sources().join("portals_stub.c")).arg("-o").arg(dir.join("libportals.so"));
        assert!(cc.status().unwrap().success());
        dir
    })
}

/// Output folder of a test; `spincc` runs in the folder of the sources.
struct Room(TempDir);

impl Room {
    fn new() -> Room {
        Room(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs `spincc` with blank-separated arguments, in which `@/` stands for the test's folder.
    fn spincc(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    fn command(&self, line: &str) -> Command {
        let room = format!("{}/", self.0.path().display());
        let mut command = Command::new(env!("CARGO_BIN_EXE_spincc"));
        command
            .args(line.split(' ').map(|word| word.replace("@/", &room)))
            .current_dir(sources())
            .env("SPINKIT_HOME", home())
            .env("SPIN_LIBDIR", lib_dir());
        command
    }

    /// Runs `spincc`, which must succeed. Returns its standard error.
    fn builds(&self, line: &str) -> String {
        let output = self.spincc(line);
        let messages = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{line}: {messages}");
        messages
    }

    /// Runs `spincc`, which must fail with this exit status. Returns its standard error.
    fn fails(&self, line: &str, status: i32) -> String {
        let output = self.spincc(line);
        let messages = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{line}: {messages}");
        messages
    }

    fn image(&self, program: &str) -> Image {
        let bytes = std::fs::read(self.path(program)).unwrap();
        Image::of_program(&bytes).unwrap().expect("the program has an image")
    }

    fn run(&self, program: &str) -> String {
        // Cargo's folder has the real library.
        let output = Command::new(self.path(program)).env_remove("LD_LIBRARY_PATH").output().unwrap();
        assert!(output.status.success(), "{program}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

fn handler_names(image: &Image) -> Vec<&str> {
    image.handlers.iter().map(|h| h.name.as_str()).collect()
}

#[test]
fn image_of_ping_pong() {
    let room = Room::new();
    assert_eq!(room.builds("pingpong.c -o @/prog"), "");
    let image = room.image("prog");
    assert_eq!(handler_names(&image), ["pp_completion", "pp_header", "pp_payload"]);
    assert_eq!(image.devices.iter().map(|d| d.kind.as_str()).collect::<Vec<_>>(), KINDS);

    // The program has its handlers at the addresses in the image, relative to the one registered by its constructor.
    let offset = |name: &str| image.handlers.iter().find(|h| h.name == name).unwrap().host_offset.unwrap();
    let names = ["pp_header", "pp_payload", "pp_completion"];
    let expected: String = names.iter().map(|name| format!("{name} {}\n", offset(name))).collect();
    assert_eq!(room.run("prog"), expected);
    // The symbol table agrees.
    let bytes = std::fs::read(room.path("prog")).unwrap();
    let program = object::File::parse(&*bytes).unwrap();
    let start = program.section_by_name("spin_handlers").unwrap().address();
    for name in names {
        let symbol = program.symbols().find(|s| s.name() == Ok(name)).unwrap();
        assert_eq!(symbol.address() - start, u64::from(offset(name)), "{name}");
    }

    // The device program has the functions used by handlers, but nothing of main().
    let layouts: Vec<_> = image.layouts.iter().map(|s| (s.name.as_str(), s.size)).collect();
    assert_eq!(layouts, [("pingpong_info_t", 32)]);
    let fields: Vec<_> = image.layouts[0].fields.iter().map(|f| (f.name.as_str(), f.offset, f.size)).collect();
    assert_eq!(fields, [("offset", 0, 8), ("source", 8, 8), ("length", 16, 8), ("stream", 24, 1)]);
}

#[test]
fn device_programs_fit_the_cards_address_space() {
    let room = Room::new();
    room.builds("-c mix.c -o @/mix.o");
    room.builds("-c static_one.c -o @/one.o");
    room.builds("uses_one.c @/mix.o @/one.o -o @/prog");
    let image = room.image("prog");
    assert_eq!(handler_names(&image), ["mixing", "same"]);
    for device in &image.devices {
        let file = object::File::parse(&*device.elf).unwrap();
        assert_eq!(file.kind(), object::ObjectKind::Executable);
        assert_eq!(file.architecture(), object::Architecture::Riscv32);
        let segments: Vec<_> = file.segments().map(|s| (s.address(), s.size(), s.flags())).collect();
        let [(program, _, code), (data, bytes, writable)] = segments[..] else { panic!("{segments:?}") };
        let flags = |p_flags| SegmentFlags::Elf { p_type: elf::PT_LOAD, p_flags };
        assert_eq!((program, code), (map::PROGRAM.into(), flags(elf::PF_R | elf::PF_X)));
        // `calls`, followed by `zero`.
        assert_eq!((data, bytes, writable), (map::DATA.into(), 20, flags(elf::PF_R | elf::PF_W)));
        let content = file.segments().nth(1).unwrap().data().unwrap();
        assert_eq!(content, 7u32.to_le_bytes());
        // The image has nothing of the host's part, and no debug information.
        let names: Vec<&str> = file.symbols().map(|s| s.name().unwrap()).collect();
        assert!(["mixing", "same", "mix", "calls", "zero"].iter().all(|name| names.contains(name)), "{names:?}");
        assert!(!names.contains(&"main") && !names.contains(&"one"), "{names:?}");
        assert!(file.sections().all(|s| !s.name().unwrap().starts_with(".debug")));
    }
    room.run("prog");
}

#[test]
fn kinds_can_be_chosen() {
    let room = Room::new();
    room.builds("--hpu rv32imac pingpong.c -o @/prog");
    assert_eq!(room.image("prog").devices.len(), 1);
    assert!(room.fails("--hpu z80 plain.c -o @/no", 2).contains("no HPU kind 'z80'; installed: armv7a ("));

    // Objects for one kind make a program for that kind, unless another is requested.
    room.builds("--hpu rv32imac -c pingpong.c -o @/pp.o");
    room.builds("@/pp.o -o @/prog2");
    assert_eq!(room.image("prog2").devices.len(), 1);
    assert!(room.fails("--hpu rv32imafdc @/pp.o -o @/no", 1).contains("pp.o was not compiled for rv32imafdc"));
}

#[test]
fn handlers_in_archives_and_shared_libraries() {
    let room = Room::new();
    room.builds("-c static_one.c -o @/one.o");
    room.builds("-c pingpong.c -o @/pp.o");
    let ar = Command::new("ar").arg("rcs").args(["libh.a", "one.o", "pp.o"].map(|f| room.path(f))).status().unwrap();
    assert!(ar.success());
    room.builds("uses_one.c mix.c -L@/ -lh -o @/prog");
    // Nothing refers to pingpong.c, so it stays in the archive.
    let image = room.image("prog");
    assert_eq!(handler_names(&image), ["mixing", "same"]);
    assert!(image.handlers.iter().all(|h| h.host_offset.is_some()));
    room.run("prog");

    room.builds("-shared -fPIC static_one.c -o @/libone.so");
    assert_eq!(handler_names(&room.image("libone.so")), ["same"]);
}

#[test]
fn objects_of_another_compiler_with_handlers_are_refused() {
    let room = Room::new();
    let include = home().join("sdk/include");
    let mut cc = Command::new("cc");
    cc.arg("-c").arg(sources().join("static_one.c")).arg("-I").arg(include).arg("-o").arg(room.path("one.o"));
    assert!(cc.status().unwrap().success());
    let message = room.fails("static_two.c @/one.o -o @/prog", 1);
    assert!(message.contains("one.o: has handlers, but no code for the card; compile it with spincc"), "{message}");
}

#[test]
fn two_handlers_of_one_name() {
    let message = Room::new().fails("static_one.c static_two.c -o @/prog", 1);
    assert_eq!(message, "spincc: error: handler 'same' is defined more than once: static_one.c, static_two.c\n");
}

#[test]
fn cxx() {
    let room = Room::new();
    assert_eq!(room.builds("-std=c++17 -c cxx.cpp -o @/cxx.o"), "");
    // Only the object reveals that the C++ library is needed.
    assert_eq!(room.builds("@/cxx.o -o @/prog"), "");
    assert_eq!(room.run("prog"), "hello\n");
    let image = room.image("prog");
    assert_eq!(handler_names(&image), ["_Z5count13ptl_payload_tPv"]);
    assert!(image.handlers[0].host_offset.is_some());
    assert_eq!(image.layouts.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["app::info"]);
    let listing = room.spincc("--disassemble=count @/prog");
    assert!(String::from_utf8(listing.stdout).unwrap().contains("<count(ptl_payload_t, void*)>"));

    let message = room.fails("constructor.cpp -o @/no", 1);
    assert!(
        message.contains(
            "constructor.cpp: handler 'uses_seed(ptl_payload_t, void*)' uses 'seed', which a constructor sets"
        )
    );
}

#[test]
fn errors_name_the_users_line() {
    let room = Room::new();
    let message = room.fails("compile_error.c -o @/prog", 1);
    assert!(message.contains("compile_error.c:2:") && !message.contains("spincc:"), "{message}");
    let message = room.fails("card_only_error.c -o @/prog", 1);
    assert!(message.contains("card_only_error.c:5:12: error: "), "{message}");
    assert!(message.contains("note: this is the compilation for the card (rv32imac)"), "{message}");
    assert!(!room.path("prog").exists());
}

#[test]
fn formats_of_handlers_are_checked_as_the_card_has_them() {
    let room = Room::new();
    assert_eq!(room.builds("prints.c -o @/prog"), "");
    // The second compilation finds its result in the cache.
    for _ in 0..2 {
        let warnings = room.builds("-DWRONG prints.c -o @/prog");
        let places: Vec<&str> = warnings.lines().filter(|line| line.contains("warning: ")).collect();
        assert!(places[0].starts_with("prints.c:10:") && places[1].starts_with("prints.c:11:"), "{warnings}");
        assert!(places.len() == 2 && !warnings.contains("expanded from macro"), "{warnings}");
    }
    assert_eq!(room.builds("-w -DWRONG prints.c -o @/prog"), "");
    assert!(room.fails("-Werror -DWRONG prints.c -o @/prog", 1).contains("prints.c:10:"));
}

#[test]
fn frames_larger_than_a_stack_are_told() {
    let sizes = "bytes of 8,192 for rv32imac, 9,";
    let warning = Room::new().builds("frame.c -O1 -o @/prog");
    assert!(warning.starts_with("spincc: warning: 'sums' needs more stack than cards have: "), "{warning}");
    assert!(warning.contains(sizes) && warning.contains(" bytes of 8,192 for rv32imafdc "), "{warning}");
    assert_eq!(warning.lines().count(), 1, "{warning}");
}

#[test]
fn functions_that_the_card_does_not_have() {
    let message = Room::new().fails("not_on_card.c -o @/prog", 1);
    assert_eq!(
        message,
        "\
spincc: error: not_on_card.c:10: handler 'indirect' calls 'fputs' through 'helper', which the card does not have; use spin_printf
spincc: error: not_on_card.c:6: handler 'direct' calls 'printf', which the card does not have; use spin_printf
"
    );
}

#[test]
fn a_kind_on_request_is_compiled_for_when_it_is_named() {
    let room = Room::new();
    room.builds("--hpu rv32imac,rv32imac-corev pingpong.c -o @/prog");
    let kinds = room.image("prog").devices.iter().map(|device| device.kind.clone()).collect::<Vec<_>>();
    assert_eq!(kinds, ["rv32imac", "rv32imac-corev"]);
}

#[test]
fn programs_too_large_for_the_card() {
    let message = Room::new().fails("too_big.c --hpu rv32imac -o @/prog", 1);
    let start = "spincc: error: handlers need 40,0";
    assert!(message.starts_with(start), "{message}");
    assert!(
        message.contains(" bytes of program memory for rv32imac, the card has 32,768; largest: table 40,000, big ")
    );
}

#[test]
fn code_that_cores_of_the_kind_cannot_execute() {
    let room = Room::new();
    // An SDK whose kind rv32imac compiles for the floating-point unit that its cores lack, with soft-float calls.
    let sdk = room.path("home/sdk");
    let kind = sdk.join("device/rv32imac");
    std::fs::create_dir_all(&kind).unwrap();
    for part in ["include", "device/layout.ld", "device/runtime"] {
        std::os::unix::fs::symlink(home().join("sdk").join(part), sdk.join(part)).unwrap();
    }
    let text = std::fs::read_to_string(home().join("sdk/device/rv32imac/kind.toml")).unwrap();
    std::fs::write(kind.join("kind.toml"), text.replace("+m+a+c", "+m+a+f+c")).unwrap();
    let refused = |name: &str| {
        let line = format!("--hpu {name} pingpong.c -o {}", room.path("no").display());
        let output = room.command(&line).env("SPINKIT_HOME", room.path("home")).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(!room.path("no").exists());
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(
        refused("rv32imac"),
        "spincc: error: rv32imac: device program: it was compiled for extension F, which rv32imac cores do not have\n"
    );
    // The name of this kind does not contain an instruction set.
    std::fs::rename(&kind, sdk.join("device/fast")).unwrap();
    let message = refused("fast");
    assert!(message.contains("device/fast/kind.toml: HPU kind 'fast' names no instruction set; "), "{message}");
}

#[test]
fn sources_of_the_host_alone() {
    let room = Room::new();
    assert_eq!(room.builds("pingpong.c host_only.c -o @/prog"), "");
    let message = room.fails("uses_one.c static_one.c host_only.c -o @/no", 1);
    assert!(message.contains("handler 'mixing' calls 'mix', which the card does not have"), "{message}");
    let reason =
        "host_only.c is not in the card's program, because it does not compile: host_only.c:2:10: fatal error: ";
    assert!(message.contains(reason), "{message}");
}

#[test]
fn return_codes_that_nobody_looks_at() {
    let warnings = Room::new().builds("-c ignored.c -o @/object.o");
    assert_eq!(warnings.matches("ignoring return value of").count(), 1, "{warnings}");
    assert!(warnings.contains("ignored.c:5:5: warning: ignoring return value of"), "{warnings}");
}

#[test]
fn memory_functions_of_the_card() {
    let room = Room::new();
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-fno-builtin", "memory_check.c", "-o"]).arg(room.path("check")).current_dir(sources());
    assert!(cc.status().unwrap().success());
    assert_eq!(room.run("check"), format!("{}\n", 71 * 8 * 25));
}

#[test]
fn missing_files() {
    let room = Room::new();
    assert!(room.fails("absent.c -o @/prog", 1).contains("absent.c"));
    assert!(room.fails("absent.o -o @/prog", 1).contains("spincc: error: cannot read absent.o: "));
    assert!(room.fails("-o @/prog", 2).contains("no input files"));
}

#[test]
fn layouts_that_differ() {
    let room = Room::new();
    let expected = [
        "layout_differs.c: struct cast_only_t: field `inner.last` has 8 bytes on the host and 4 on the card",
        "layout_differs.c: struct shared: field `p` is at offset 8 on the host and 4 on the card",
    ];
    let text = |kind: &str, end: &str| -> String {
        expected.iter().map(|line| format!("spincc: {kind}: {line}; use fixed-width types{end}\n")).collect()
    };
    assert_eq!(room.builds("layout_differs.c -o @/prog"), text("warning", " [-Wspin-layout]"));
    assert_eq!(room.fails("-Werror=spin-layout layout_differs.c -o @/no", 1), text("error", ""));
    assert_eq!(room.builds("-Wno-spin-layout layout_differs.c -o @/prog"), "");
    // Objects contain the host's view, even if their own debug information cannot be read.
    room.builds("-flto -c layout_differs.c -o @/l.o");
    assert_eq!(room.builds("-flto @/l.o -o @/prog"), text("warning", " [-Wspin-layout]"));

    let listing = String::from_utf8(room.spincc("--layouts @/prog").stdout).unwrap();
    assert!(listing.contains(r#""name": "inner.last""#), "{listing}");
}

#[test]
fn handlers_without_a_mark_are_refused_with_the_remedy() {
    let room = Room::new();
    let refusal = |line: u32, name: &str, role: &str| {
        format!(
            "spincc: error: unmarked.c:{line}: '{name}' is used as a {role} handler, but has no code for the card: write \
             __handler before its definition, '__handler int {name}(...)' (-Wno-spin-unmarked if it is no handler)\n"
        )
    };
    let expected = refusal(15, "first", "header") + &refusal(17, "last", "completion");
    for flags in ["", "-O2 ", "-g ", "-flto ", "-c "] {
        assert_eq!(room.fails(&format!("{flags}unmarked.c -o @/prog"), 1), expected, "{flags}");
    }
    assert_eq!(room.builds("-Wno-spin-unmarked unmarked.c -o @/prog"), "");
}

#[test]
fn link_time_optimization_of_the_host() {
    let room = Room::new();
    room.builds("-O2 -flto pingpong.c -o @/prog");
    let image = room.image("prog");
    assert_eq!(handler_names(&image), ["pp_completion", "pp_header", "pp_payload"]);
    assert!(image.handlers.iter().all(|h| h.host_offset.is_some()));
    assert!(room.run("prog").contains(&format!("pp_payload {}\n", image.handlers[2].host_offset.unwrap())));
}

#[test]
fn debug_information_stays_with_g() {
    let room = Room::new();
    room.builds("-g pingpong.c -o @/prog");
    let image = room.image("prog");
    let file = object::File::parse(&*image.devices[0].elf).unwrap();
    assert!(file.section_by_name(".debug_line").is_some());
    let listing = String::from_utf8(room.spincc("--disassemble pp_header --hpu rv32imac @/prog").stdout).unwrap();
    assert!(listing.starts_with("rv32imac:\n"), "{listing}");
    assert!(listing.contains("<pp_header>"), "{listing}");
    assert!(listing.contains("; pingpong.c:22  i->length = h.length;"), "{listing}");
    assert!(listing.contains("c.jr       ra"), "{listing}");

    room.builds("pingpong.c -o @/small");
    let sections = |program: &str| {
        let bytes = std::fs::read(room.path(program)).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        (file.section_by_name(".debug_info").is_some(), file.symbols().next().is_some())
    };
    assert_eq!((sections("prog"), sections("small")), ((true, true), (false, true)));
    room.builds("-s pingpong.c -o @/stripped");
    assert_eq!(sections("stripped"), (false, false));
    assert_eq!(room.run("stripped"), room.run("small"));
}

#[test]
fn disassembly_of_sources_and_unknown_handlers() {
    let room = Room::new();
    let listing = String::from_utf8(room.spincc("--disassemble --hpu rv32imafdc pingpong.c").stdout).unwrap();
    for handler in ["pp_header", "pp_payload", "pp_completion"] {
        assert!(listing.contains(&format!("<{handler}>")), "{listing}");
    }
    assert_eq!(listing.matches("ecall").count(), 2 + listing.matches("asm__ volatile(\"ecall\"").count());
    let message = room.fails("--disassemble nothing pingpong.c", 1);
    assert_eq!(message, "spincc: error: no handler 'nothing'; there are: pp_completion, pp_header, pp_payload\n");
}

#[test]
fn keep_leaves_the_device_programs() {
    let room = Room::new();
    room.builds("--keep pingpong.c -o @/prog");
    for kind in KINDS {
        let bytes = std::fs::read(room.path(&format!("prog.{kind}.elf"))).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        assert!(file.symbols().any(|s| s.name() == Ok("pp_payload")));
        assert!(file.section_by_name(".debug_info").is_some());
    }
}

#[test]
fn program_without_handlers() {
    let room = Room::new();
    assert_eq!(room.builds("plain.c -o @/prog"), "");
    let bytes = std::fs::read(room.path("prog")).unwrap();
    assert_eq!(Image::of_program(&bytes), Ok(None));
    room.run("prog");
}

#[test]
fn same_input_same_program() {
    let room = Room::new();
    room.builds("pingpong.c -o @/a");
    room.builds("pingpong.c -o @/b");
    assert_eq!(std::fs::read(room.path("a")).unwrap(), std::fs::read(room.path("b")).unwrap());
}

#[test]
fn one_host_pass_options() {
    let room = Room::new();
    let output = room.spincc("-E pingpong.c");
    assert!(String::from_utf8(output.stdout).unwrap().contains("struct ptl_header_t {"));
    room.builds("-MMD -c mix.c -o @/mix.o");
    assert!(std::fs::read_to_string(room.path("mix.d")).unwrap().contains("mix.o: mix.c"));
    let version = room.spincc("--version");
    assert_eq!(String::from_utf8(version.stdout).unwrap(), format!("spincc {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn code_that_does_not_end_is_refused() {
    let room = Room::new();
    let line = |text: &str| {
        let source = std::fs::read_to_string(sources().join("undefined.c")).unwrap();
        let lines: Vec<_> = (1..).zip(source.lines()).filter(|(_, line)| line.contains(text)).map(|(n, _)| n).collect();
        *lines.last().unwrap()
    };
    let messages = room.fails("-O2 undefined.c -o @/empty", 1);
    let place = format!("undefined.c:{}: ", line("__builtin_unreachable"));
    let what = "handler 'payload' has no code but a trap: its behaviour is undefined on every path";
    assert!(messages.contains(&place) && messages.contains(what), "{messages}");
    let messages = room.fails("-O2 -DRUNS_ON undefined.c -o @/onward", 1);
    assert!(messages.contains("function 'onward' does not end: it falls through into the next function"), "{messages}");
}

#[test]
fn flags_for_editors_find_the_headers() {
    let room = Room::new();
    let flags = String::from_utf8(room.spincc("--cflags").stdout).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(flags.split_whitespace()).arg("-fsyntax-only").arg(sources().join("pingpong.c"));
    assert!(compiler.status().unwrap().success(), "{flags}");
}

#[test]
fn compile_commands_have_an_entry_for_each_source_and_keep_others() {
    let room = Room::new();
    let other = r#"{"directory": "/elsewhere", "file": "a.c", "command": "cc -c a.c", "output": "a.o"}"#;
    std::fs::write(room.path("compile_commands.json"), format!("[{other}]")).unwrap();
    let source = sources().join("pingpong.c").display().to_string();
    let write = |line: &str| room.command(line).current_dir(room.0.path()).output().unwrap();
    for flags in ["-DOLD", "-DNEW=1 -O2"] {
        assert!(write(&format!("--compile-commands {flags} {source}")).status.success());
    }
    let text = std::fs::read_to_string(room.path("compile_commands.json")).unwrap();
    let found: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(found.len(), 2, "{text}");
    assert_eq!(found[0], serde_json::from_str::<serde_json::Value>(other).unwrap());
    let words: Vec<&str> =
        found[1]["arguments"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    assert!(words.contains(&"-DNEW=1") && !words.contains(&"-DOLD"), "{words:?}");
    assert_eq!(words.last(), Some(&source.as_str()));
    // The command compiles the source.
    let mut compiler = Command::new(words[0]);
    compiler.args(&words[1..]).args(["-o", "out.o"]).current_dir(room.0.path());
    assert!(compiler.status().unwrap().success());
    assert!(!room.path("a.out").exists(), "nothing is compiled");

    std::fs::write(room.path("compile_commands.json"), "{").unwrap();
    let done = write(&format!("--compile-commands {source}"));
    assert_eq!(done.status.code(), Some(1));
    assert!(String::from_utf8(done.stderr).unwrap().contains("compile_commands.json"));
}
