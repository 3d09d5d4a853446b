	.attribute	4, 16
	.attribute	5, "rv32i2p1_m2p0_a2p1_c2p0_zicsr2p0_zmmul1p0_zaamo1p0_zalrsc1p0_zca1p0"
	.file	"prints.c"
	.file	1 "/work/main/tests/spincc" "prints.c"
	.file	2 "/work/main" "sdk/include/spin.h"
	.file	3 "/work/main" ".venv/lib/python3.11/site-packages/ziglang/lib/libc/include/riscv32-linux-musl/bits/alltypes.h"
	.section	spin_handlers,"ax",@progbits
	.globl	prints                          # -- Begin function prints
	.p2align	1
	.type	prints,@function
prints:                                 # @prints
.Lfunc_begin0:
	.loc	1 5 0                           # prints.c:5:0
	.cfi_sections .debug_frame
	.cfi_startproc
# %bb.0:
	#DEBUG_VALUE: prints:p <- [DW_OP_deref] $x10
	#DEBUG_VALUE: prints:state <- $x11
	addi	sp, sp, -16
	.cfi_def_cfa_offset 16
	sw	ra, 12(sp)                      # 4-byte Folded Spill
	sw	s0, 8(sp)                       # 4-byte Folded Spill
	.cfi_offset ra, -4
	.cfi_offset s0, -8
	.cfi_remember_state
	mv	s0, a0
.Ltmp0:
	#DEBUG_VALUE: prints:p <- [DW_OP_deref] $x8
	.loc	1 6 35 prologue_end             # prints.c:6:35
	lw	a2, 0(a0)
	lw	a3, 4(a0)
	.loc	1 6 5 is_stmt 0                 # prints.c:6:5
	lui	a0, %hi(.L.str)
	addi	a0, a0, %lo(.L.str)
	mv	a4, a1
.Ltmp1:
	#DEBUG_VALUE: prints:state <- $x14
	call	spin_printf
.Ltmp2:
	.loc	1 7 55 is_stmt 1                # prints.c:7:55
	lw	a2, 8(s0)
	.loc	1 7 9 is_stmt 0                 # prints.c:7:9
	lui	a0, %hi(.L.str.1)
	addi	a0, a0, %lo(.L.str.1)
	lui	a1, %hi(.L.str.2)
	addi	a1, a1, %lo(.L.str.2)
	call	spin_printf
.Ltmp3:
	.loc	1 7 63 is_stmt 1                # prints.c:7:63
	beqz	a0, .LBB0_2
.Ltmp4:
# %bb.1:
	#DEBUG_VALUE: prints:p <- [DW_OP_deref] $x8
	.loc	1 14 1                          # prints.c:14:1
	li	a0, 8
	.loc	1 14 1 epilogue_begin is_stmt 0 # prints.c:14:1
	lw	ra, 12(sp)                      # 4-byte Folded Reload
	lw	s0, 8(sp)                       # 4-byte Folded Reload
.Ltmp5:
	.cfi_restore ra
	.cfi_restore s0
	addi	sp, sp, 16
	.cfi_def_cfa_offset 0
	ret
.LBB0_2:
	.cfi_restore_state
.Ltmp6:
	#DEBUG_VALUE: prints:p <- [DW_OP_deref] $x8
	.loc	1 10 27 is_stmt 1               # prints.c:10:27
	lw	a2, 0(s0)
	lw	a3, 4(s0)
	.loc	1 10 5 is_stmt 0                # prints.c:10:5
	lui	a0, %hi(.L.str.3)
	addi	a0, a0, %lo(.L.str.3)
	call	spin_printf
.Ltmp7:
	.loc	1 11 12 is_stmt 1               # prints.c:11:12
	lui	a0, %hi(.L.str.4)
	addi	a0, a0, %lo(.L.str.4)
	lui	a1, %hi(.L.str.5)
	addi	a1, a1, %lo(.L.str.5)
	.loc	1 11 12 epilogue_begin is_stmt 0 # prints.c:11:12
	lw	ra, 12(sp)                      # 4-byte Folded Reload
	lw	s0, 8(sp)                       # 4-byte Folded Reload
.Ltmp8:
	.cfi_restore ra
	.cfi_restore s0
	addi	sp, sp, 16
	.cfi_def_cfa_offset 0
.Ltmp9:
	tail	spin_printf
.Ltmp10:
.Lfunc_end0:
	.size	prints, .Lfunc_end0-prints
	.cfi_endproc
	.section	.stack_sizes,"o",@progbits,spin_handlers
	.word	.Lfunc_begin0
	.byte	16
	.section	spin_handlers,"ax",@progbits
                                        # -- End function
	.section	.text.main,"ax",@progbits
	.globl	main                            # -- Begin function main
	.p2align	1
	.type	main,@function
main:                                   # @main
.Lfunc_begin1:
	.loc	1 16 0 is_stmt 1                # prints.c:16:0
	.cfi_startproc
# %bb.0:
	addi	sp, sp, -16
	.cfi_def_cfa_offset 16
	sw	ra, 12(sp)                      # 4-byte Folded Spill
	.cfi_offset ra, -4
.Ltmp11:
	.loc	1 17 21 prologue_end            # prints.c:17:21
	lui	a2, %hi(prints)
	addi	a2, a2, %lo(prints)
	.loc	1 17 5 is_stmt 0                # prints.c:17:5
	lui	a0, %hi(.L.str.6)
	addi	a0, a0, %lo(.L.str.6)
	li	a3, 0
	call	printf
.Ltmp12:
	.loc	1 18 5 is_stmt 1                # prints.c:18:5
	li	a0, 0
	.loc	1 18 5 epilogue_begin is_stmt 0 # prints.c:18:5
	lw	ra, 12(sp)                      # 4-byte Folded Reload
	.cfi_restore ra
	addi	sp, sp, 16
	.cfi_def_cfa_offset 0
	ret
.Ltmp13:
.Lfunc_end1:
	.size	main, .Lfunc_end1-main
	.cfi_endproc
	.file	4 "/work/main" ".venv/lib/python3.11/site-packages/ziglang/lib/libc/include/generic-musl/stdio.h"
	.section	.stack_sizes,"o",@progbits,.text.main
	.word	.Lfunc_begin1
	.byte	16
	.section	.text.main,"ax",@progbits
                                        # -- End function
	.type	.L.str,@object                  # @.str
	.section	.rodata.str1.1,"aMS",@progbits,1
.L.str:
	.asciz	"%llu at %p\n"
	.size	.L.str, 12

	.type	.L.str.1,@object                # @.str.1
.L.str.1:
	.asciz	"%s: %u\n"
	.size	.L.str.1, 8

	.type	.L.str.2,@object                # @.str.2
.L.str.2:
	.asciz	"offset"
	.size	.L.str.2, 7

	.type	.L.str.3,@object                # @.str.3
.L.str.3:
	.asciz	"%d\n"
	.size	.L.str.3, 4

	.type	.L.str.4,@object                # @.str.4
.L.str.4:
	.asciz	"%s %s\n"
	.size	.L.str.4, 7

	.type	.L.str.5,@object                # @.str.5
.L.str.5:
	.asciz	"one"
	.size	.L.str.5, 4

	.type	.L.str.6,@object                # @.str.6
.L.str.6:
	.asciz	"%lu\n"
	.size	.L.str.6, 5

	.file	5 "/work/main" "sdk/include/portals4.h"
	.file	6 "/work/main" "sdk/include/spin/types.h"
	.section	.debug_loc,"",@progbits
.Ldebug_loc0:
	.word	-1
	.word	.Lfunc_begin0                   #   base address
	.word	.Lfunc_begin0-.Lfunc_begin0
	.word	.Ltmp0-.Lfunc_begin0
	.half	2                               # Loc expr size
	.byte	122                             # DW_OP_breg10
	.byte	0                               # 0
	.word	.Ltmp0-.Lfunc_begin0
	.word	.Ltmp5-.Lfunc_begin0
	.half	2                               # Loc expr size
	.byte	120                             # DW_OP_breg8
	.byte	0                               # 0
	.word	.Ltmp6-.Lfunc_begin0
	.word	.Ltmp8-.Lfunc_begin0
	.half	2                               # Loc expr size
	.byte	120                             # DW_OP_breg8
	.byte	0                               # 0
	.word	0
	.word	0
.Ldebug_loc1:
	.word	-1
	.word	.Lfunc_begin0                   #   base address
	.word	.Lfunc_begin0-.Lfunc_begin0
	.word	.Ltmp1-.Lfunc_begin0
	.half	1                               # Loc expr size
	.byte	91                              # DW_OP_reg11
	.word	.Ltmp1-.Lfunc_begin0
	.word	.Ltmp2-.Lfunc_begin0
	.half	1                               # Loc expr size
	.byte	94                              # DW_OP_reg14
	.word	0
	.word	0
	.section	.debug_abbrev,"",@progbits
	.byte	1                               # Abbreviation Code
	.byte	17                              # DW_TAG_compile_unit
	.byte	1                               # DW_CHILDREN_yes
	.byte	37                              # DW_AT_producer
	.byte	14                              # DW_FORM_strp
	.byte	19                              # DW_AT_language
	.byte	5                               # DW_FORM_data2
	.byte	3                               # DW_AT_name
	.byte	14                              # DW_FORM_strp
	.byte	16                              # DW_AT_stmt_list
	.byte	23                              # DW_FORM_sec_offset
	.byte	27                              # DW_AT_comp_dir
	.byte	14                              # DW_FORM_strp
	.byte	17                              # DW_AT_low_pc
	.byte	1                               # DW_FORM_addr
	.byte	85                              # DW_AT_ranges
	.byte	23                              # DW_FORM_sec_offset
	.byte	0                               # EOM(1)
	.byte	0                               # EOM(2)
	.byte	2                               # Abbreviation Code
	.byte	52                              # DW_TAG_variable
	.byte	0                               # DW_CHILDREN_no
	.byte	73                              # DW_AT_type
	.byte	19                              # DW_FORM_ref4
	.byte	58                              # DW_AT_decl_file
	.byte	11                              # DW_FORM_data1
	.byte	59                              # DW_AT_decl_line
	.byte	11                              # DW_FORM_data1
	.byte	2                               # DW_AT_location
	.byte	24                              # DW_FORM_exprloc
	.byte	0                               # EOM(1)
	.byte	0                               # EOM(2)
	.byte	3                               # Abbreviation Code
	.byte	1                               # DW_TAG_array_type
	.byte	1                               # DW_CHILDREN_yes
	.byte	73                              # DW_AT_type
	.byte	19                              # DW_FORM_ref4
	.byte	0                               # EOM(1)
	.byte	0                               # EOM(2)
	.byte	4                               # Abbreviation Code
	.byte	33                              # DW_TAG_subrange_type
	.byte	0                               # DW_CHILDREN_no
	.byte	73                              # DW_AT_type
	.byte	19                              # DW_FORM_ref4
	.byte	55                              # DW_AT_count
	.byte	11                              # DW_FORM_data1
	.byte	0                               # EOM(1)
	.byte	0                               # EOM(2)
	.byte	5                               # Abbreviation Code
	.byte	36                              # DW_TAG_base_type
	.byte	0                               # DW_CHILDREN_no
	.byte	3                               # DW_AT_name
	.byte	14                              # DW_FORM_strp
	.byte	62                              # DW_AT_encoding
	.byte	11                              # DW_FORM_data1
	.byte	11                              # DW_AT_byte_size
	.byte	11                              # DW_FORM_data1
	.byte	0                               # EOM(1)
	.byte	0                               # EOM(2)
	.byte	6                               # Abbreviation Code
	.byte	36                              # DW_TAG_base_type
	.byte	0                               # DW_CHILDREN_no
	.byte	3                               # DW_AT_name
	.byte	14                              # DW_FORM_strp
	.byte	11                              # DW_AT_byte_size
	.byte	11                              # DW_FORM_data1
	.byte	62                              # DW_AT_encoding
	.byte	11                              # DW_FORM_data1
	.byte	0                               # EOM(1)
	.byte	0                               # EOM(2)
	.byte	7                               # Abbreviation Code
	.byte	4                               # DW_TAG_enumeration_type
	.byte	1                               # DW_CHILDREN_yes
	.byte	73                              # DW_AT_type
	.byte	19                              # DW_FORM_ref4
	.byte	11                              # DW_AT_byte_size
	.byte	11                              # DW_FORM_data1
	.byte	58                              # DW_AT_decl_file
	.byte	11                              # DW_FORM_data1
	.byte	59                              # DW_AT_decl_line
	.byte	11                              # DW_FORM_data1
	.byte	0                               # EOM(1)
	.byte	0                               # EOM(2)
	.byte	8                               # Abbreviation Code
	.byte	40                              # DW_TAG_enumerator
	.byte	0                               # DW_CHILDREN_no
	.byte	3                               # DW_AT_name
	.byte	14                              # DW_FORM_strp
	.byte	28                              # DW_AT_const_value
	.byte	15                              # DW_FORM_udata
	.byte	0                               # EOM(1)
	.byte	0                               # EOM(2)
	.byte	9                               # Abbreviation Code
	.byte	22                              # DW_TAG_typedef
	.byte	0                               # DW_CHILDREN_no
	.byte	73                              # DW_AT_type
	.byte	19                              # DW_FORM_ref4
	.byte	3                               # DW_AT_name
	.byte	14                              # DW_FORM_strp
	.byte	58                              # DW_AT_decl_file
	.byte	11                              # DW_FORM_data1
	.byte	59                              # DW_AT_decl_line
	.byte	11                              # DW_FORM_data1
	.byte	0                               # EOM(1)
	.byte	0                               # EOM(2)
	.byte	10                              # Abbreviation Code
	.byte	46                              # DW_TAG_subprogram
	.byte	1                               # DW_CHILDREN_yes
	.byte	17                              # DW_AT_low_pc
	.byte	1                               # DW_FORM_addr
	.byte	18                              # DW_AT_high_pc
	.byte	6                               # DW_FORM_data4
	.byte	64                              # DW_AT_frame_base
	.byte	24                              # DW_FORM_exprloc
	.ascii	"\227B"                         # DW_AT_GNU_all_call_sites
	.byte	25                              # DW_FORM_flag_present
	.byte	3                               # DW_AT_name
	.byte	14                              # DW_FORM_strp
	.byte	58                              # DW_AT_decl_file
	.byte	11                              # DW_FORM_data1
	.byte	59                              # DW_AT_decl_line
	.byte	11                              # DW_FORM_data1
	.byte	39                              # DW_AT_prototyped
	.byte	25                              # DW_FORM_flag_present
	.byte	73                              # DW_AT_type
	.byte	19                              # DW_FORM_ref4
	.byte	63                              # DW_AT_external
	.byte	25                              # DW_FORM_flag_present
	.byte	0                               # EOM(1)
	.byte	0                               # EOM(2)
	.byte	11                              # Abbreviation Code
	.byte	5                               # DW_TAG_formal_parameter
	.byte	0                               # DW_CHILDREN_no
	.byte	2                               # DW_AT_location
	.byte	23                              # DW_FORM_sec_offset
	.byte	3                               # DW_AT_name
	.byte	14                              # DW_FORM_strp
	.byte	58                              # DW_AT_decl_file
	.byte	11                              # DW_FORM_data1
	.byte	59                              # DW_AT_decl_line
	.byte	11                              # DW_FORM_data1
	.byte	73                              # DW_AT_type
	.byte	19                              # DW_FORM_ref4
	.byte	0                               # EOM(1)
	.byte	0                               # EOM(2)
	.byte	12                              # Abbreviation Code
	.ascii	"\211\202\001"                  # DW_TAG_GNU_call_site
	.byte	1                               # DW_CHILDREN_yes
	.byte	49                              # DW_AT_abstract_origin
	.byte	19                              # DW_FORM_ref4
	.byte	17                              # DW_AT_low_pc
	.byte	1                               # DW_FORM_addr
	.byte	0                               # EOM(1)
	.byte	0                               # EOM(2)
	.byte	13                              # Abbreviation Code
	.ascii	"\212\202\001"                  # DW_TAG_GNU_call_site_parameter
	.byte	0                               # DW_CHILDREN_no
	.byte	2                               # DW_AT_location
	.byte	24                              # DW_FORM_exprloc
	.ascii	"\221B"                         # DW_AT_GNU_call_site_value
	.byte	24                              # DW_FORM_exprloc
	.byte	0                               # EOM(1)
	.byte	0                               # EOM(2)
	.byte	14                              # Abbreviation Code
	.ascii	"\211\202\001"                  # DW_TAG_GNU_call_site
	.byte	0                               # DW_CHILDREN_no
	.byte	49                              # DW_AT_abstract_origin
	.byte	19                              # DW_FORM_ref4
	.byte	17                              # DW_AT_low_pc
	.byte	1                               # DW_FORM_addr
	.byte	0                               # EOM(1)
	.byte	0                               # EOM(2)
	.byte	15                              # Abbreviation Code
	.ascii	"\211\202\001"                  # DW_TAG_GNU_call_site
	.byte	0                               # DW_CHILDREN_no
	.byte	49                              # DW_AT_abstract_origin
	.byte	19                              # DW_FORM_ref4
	.ascii	"\225B"                         # DW_AT_GNU_tail_call
	.byte	25                              # DW_FORM_flag_present
	.byte	17                              # DW_AT_low_pc
	.byte	1                               # DW_FORM_addr
	.byte	0                               # EOM(1)
	.byte	0                               # EOM(2)
	.byte	16                              # Abbreviation Code
	.byte	46                              # DW_TAG_subprogram
	.byte	1                               # DW_CHILDREN_yes
	.byte	3                               # DW_AT_name
	.byte	14                              # DW_FORM_strp
	.byte	58                              # DW_AT_decl_file
	.byte	11                              # DW_FORM_data1
	.byte	59                              # DW_AT_decl_line
	.byte	5                               # DW_FORM_data2
	.byte	39                              # DW_AT_prototyped
	.byte	25                              # DW_FORM_flag_present
	.byte	73                              # DW_AT_type
	.byte	19                              # DW_FORM_ref4
	.byte	60                              # DW_AT_declaration
	.byte	25                              # DW_FORM_flag_present
	.byte	63                              # DW_AT_external
	.byte	25                              # DW_FORM_flag_present
	.byte	0                               # EOM(1)
	.byte	0                               # EOM(2)
	.byte	17                              # Abbreviation Code
	.byte	5                               # DW_TAG_formal_parameter
	.byte	0                               # DW_CHILDREN_no
	.byte	73                              # DW_AT_type
	.byte	19                              # DW_FORM_ref4
	.byte	0                               # EOM(1)
	.byte	0                               # EOM(2)
	.byte	18                              # Abbreviation Code
	.byte	24                              # DW_TAG_unspecified_parameters
	.byte	0                               # DW_CHILDREN_no
	.byte	0                               # EOM(1)
	.byte	0                               # EOM(2)
	.byte	19                              # Abbreviation Code
	.byte	15                              # DW_TAG_pointer_type
	.byte	0                               # DW_CHILDREN_no
	.byte	73                              # DW_AT_type
	.byte	19                              # DW_FORM_ref4
	.byte	0                               # EOM(1)
	.byte	0                               # EOM(2)
	.byte	20                              # Abbreviation Code
	.byte	38                              # DW_TAG_const_type
	.byte	0                               # DW_CHILDREN_no
	.byte	73                              # DW_AT_type
	.byte	19                              # DW_FORM_ref4
	.byte	0                               # EOM(1)
	.byte	0                               # EOM(2)
	.byte	21                              # Abbreviation Code
	.byte	46                              # DW_TAG_subprogram
	.byte	1                               # DW_CHILDREN_yes
	.byte	3                               # DW_AT_name
	.byte	14                              # DW_FORM_strp
	.byte	58                              # DW_AT_decl_file
	.byte	11                              # DW_FORM_data1
	.byte	59                              # DW_AT_decl_line
	.byte	11                              # DW_FORM_data1
	.byte	39                              # DW_AT_prototyped
	.byte	25                              # DW_FORM_flag_present
	.byte	73                              # DW_AT_type
	.byte	19                              # DW_FORM_ref4
	.byte	60                              # DW_AT_declaration
	.byte	25                              # DW_FORM_flag_present
	.byte	63                              # DW_AT_external
	.byte	25                              # DW_FORM_flag_present
	.byte	0                               # EOM(1)
	.byte	0                               # EOM(2)
	.byte	22                              # Abbreviation Code
	.byte	55                              # DW_TAG_restrict_type
	.byte	0                               # DW_CHILDREN_no
	.byte	73                              # DW_AT_type
	.byte	19                              # DW_FORM_ref4
	.byte	0                               # EOM(1)
	.byte	0                               # EOM(2)
	.byte	23                              # Abbreviation Code
	.byte	19                              # DW_TAG_structure_type
	.byte	1                               # DW_CHILDREN_yes
	.byte	3                               # DW_AT_name
	.byte	14                              # DW_FORM_strp
	.byte	11                              # DW_AT_byte_size
	.byte	11                              # DW_FORM_data1
	.byte	58                              # DW_AT_decl_file
	.byte	11                              # DW_FORM_data1
	.byte	59                              # DW_AT_decl_line
	.byte	11                              # DW_FORM_data1
	.byte	0                               # EOM(1)
	.byte	0                               # EOM(2)
	.byte	24                              # Abbreviation Code
	.byte	13                              # DW_TAG_member
	.byte	0                               # DW_CHILDREN_no
	.byte	3                               # DW_AT_name
	.byte	14                              # DW_FORM_strp
	.byte	73                              # DW_AT_type
	.byte	19                              # DW_FORM_ref4
	.byte	58                              # DW_AT_decl_file
	.byte	11                              # DW_FORM_data1
	.byte	59                              # DW_AT_decl_line
	.byte	11                              # DW_FORM_data1
	.byte	56                              # DW_AT_data_member_location
	.byte	11                              # DW_FORM_data1
	.byte	0                               # EOM(1)
	.byte	0                               # EOM(2)
	.byte	25                              # Abbreviation Code
	.byte	15                              # DW_TAG_pointer_type
	.byte	0                               # DW_CHILDREN_no
	.byte	0                               # EOM(1)
	.byte	0                               # EOM(2)
	.byte	0                               # EOM(3)
	.section	.debug_info,"",@progbits
.Lcu_begin0:
	.word	.Ldebug_info_end0-.Ldebug_info_start0 # Length of Unit
.Ldebug_info_start0:
	.half	4                               # DWARF version number
	.word	.debug_abbrev                   # Offset Into Abbrev. Section
	.byte	4                               # Address Size (in bytes)
	.byte	1                               # Abbrev [1] 0xb:0x24b DW_TAG_compile_unit
	.word	.Linfo_string0                  # DW_AT_producer
	.half	29                              # DW_AT_language
	.word	.Linfo_string1                  # DW_AT_name
	.word	.Lline_table_start0             # DW_AT_stmt_list
	.word	.Linfo_string2                  # DW_AT_comp_dir
	.word	0                               # DW_AT_low_pc
	.word	.Ldebug_ranges0                 # DW_AT_ranges
	.byte	2                               # Abbrev [2] 0x26:0xd DW_TAG_variable
	.word	51                              # DW_AT_type
	.byte	1                               # DW_AT_decl_file
	.byte	6                               # DW_AT_decl_line
	.byte	5                               # DW_AT_location
	.byte	3
	.word	.L.str
	.byte	3                               # Abbrev [3] 0x33:0xc DW_TAG_array_type
	.word	63                              # DW_AT_type
	.byte	4                               # Abbrev [4] 0x38:0x6 DW_TAG_subrange_type
	.word	70                              # DW_AT_type
	.byte	12                              # DW_AT_count
	.byte	0                               # End Of Children Mark
	.byte	5                               # Abbrev [5] 0x3f:0x7 DW_TAG_base_type
	.word	.Linfo_string3                  # DW_AT_name
	.byte	6                               # DW_AT_encoding
	.byte	1                               # DW_AT_byte_size
	.byte	6                               # Abbrev [6] 0x46:0x7 DW_TAG_base_type
	.word	.Linfo_string4                  # DW_AT_name
	.byte	8                               # DW_AT_byte_size
	.byte	7                               # DW_AT_encoding
	.byte	2                               # Abbrev [2] 0x4d:0xd DW_TAG_variable
	.word	90                              # DW_AT_type
	.byte	1                               # DW_AT_decl_file
	.byte	7                               # DW_AT_decl_line
	.byte	5                               # DW_AT_location
	.byte	3
	.word	.L.str.1
	.byte	3                               # Abbrev [3] 0x5a:0xc DW_TAG_array_type
	.word	63                              # DW_AT_type
	.byte	4                               # Abbrev [4] 0x5f:0x6 DW_TAG_subrange_type
	.word	70                              # DW_AT_type
	.byte	8                               # DW_AT_count
	.byte	0                               # End Of Children Mark
	.byte	2                               # Abbrev [2] 0x66:0xd DW_TAG_variable
	.word	115                             # DW_AT_type
	.byte	1                               # DW_AT_decl_file
	.byte	7                               # DW_AT_decl_line
	.byte	5                               # DW_AT_location
	.byte	3
	.word	.L.str.2
	.byte	3                               # Abbrev [3] 0x73:0xc DW_TAG_array_type
	.word	63                              # DW_AT_type
	.byte	4                               # Abbrev [4] 0x78:0x6 DW_TAG_subrange_type
	.word	70                              # DW_AT_type
	.byte	7                               # DW_AT_count
	.byte	0                               # End Of Children Mark
	.byte	2                               # Abbrev [2] 0x7f:0xd DW_TAG_variable
	.word	140                             # DW_AT_type
	.byte	1                               # DW_AT_decl_file
	.byte	10                              # DW_AT_decl_line
	.byte	5                               # DW_AT_location
	.byte	3
	.word	.L.str.3
	.byte	3                               # Abbrev [3] 0x8c:0xc DW_TAG_array_type
	.word	63                              # DW_AT_type
	.byte	4                               # Abbrev [4] 0x91:0x6 DW_TAG_subrange_type
	.word	70                              # DW_AT_type
	.byte	4                               # DW_AT_count
	.byte	0                               # End Of Children Mark
	.byte	2                               # Abbrev [2] 0x98:0xd DW_TAG_variable
	.word	115                             # DW_AT_type
	.byte	1                               # DW_AT_decl_file
	.byte	11                              # DW_AT_decl_line
	.byte	5                               # DW_AT_location
	.byte	3
	.word	.L.str.4
	.byte	2                               # Abbrev [2] 0xa5:0xd DW_TAG_variable
	.word	140                             # DW_AT_type
	.byte	1                               # DW_AT_decl_file
	.byte	11                              # DW_AT_decl_line
	.byte	5                               # DW_AT_location
	.byte	3
	.word	.L.str.5
	.byte	2                               # Abbrev [2] 0xb2:0xd DW_TAG_variable
	.word	191                             # DW_AT_type
	.byte	1                               # DW_AT_decl_file
	.byte	17                              # DW_AT_decl_line
	.byte	5                               # DW_AT_location
	.byte	3
	.word	.L.str.6
	.byte	3                               # Abbrev [3] 0xbf:0xc DW_TAG_array_type
	.word	63                              # DW_AT_type
	.byte	4                               # Abbrev [4] 0xc4:0x6 DW_TAG_subrange_type
	.word	70                              # DW_AT_type
	.byte	5                               # DW_AT_count
	.byte	0                               # End Of Children Mark
	.byte	7                               # Abbrev [7] 0xcb:0x45 DW_TAG_enumeration_type
	.word	272                             # DW_AT_type
	.byte	4                               # DW_AT_byte_size
	.byte	2                               # DW_AT_decl_file
	.byte	93                              # DW_AT_decl_line
	.byte	8                               # Abbrev [8] 0xd3:0x6 DW_TAG_enumerator
	.word	.Linfo_string6                  # DW_AT_name
	.byte	0                               # DW_AT_const_value
	.byte	8                               # Abbrev [8] 0xd9:0x6 DW_TAG_enumerator
	.word	.Linfo_string7                  # DW_AT_name
	.byte	1                               # DW_AT_const_value
	.byte	8                               # Abbrev [8] 0xdf:0x6 DW_TAG_enumerator
	.word	.Linfo_string8                  # DW_AT_name
	.byte	2                               # DW_AT_const_value
	.byte	8                               # Abbrev [8] 0xe5:0x6 DW_TAG_enumerator
	.word	.Linfo_string9                  # DW_AT_name
	.byte	3                               # DW_AT_const_value
	.byte	8                               # Abbrev [8] 0xeb:0x6 DW_TAG_enumerator
	.word	.Linfo_string10                 # DW_AT_name
	.byte	4                               # DW_AT_const_value
	.byte	8                               # Abbrev [8] 0xf1:0x6 DW_TAG_enumerator
	.word	.Linfo_string11                 # DW_AT_name
	.byte	5                               # DW_AT_const_value
	.byte	8                               # Abbrev [8] 0xf7:0x6 DW_TAG_enumerator
	.word	.Linfo_string12                 # DW_AT_name
	.byte	6                               # DW_AT_const_value
	.byte	8                               # Abbrev [8] 0xfd:0x6 DW_TAG_enumerator
	.word	.Linfo_string13                 # DW_AT_name
	.byte	7                               # DW_AT_const_value
	.byte	8                               # Abbrev [8] 0x103:0x6 DW_TAG_enumerator
	.word	.Linfo_string14                 # DW_AT_name
	.byte	8                               # DW_AT_const_value
	.byte	8                               # Abbrev [8] 0x109:0x6 DW_TAG_enumerator
	.word	.Linfo_string15                 # DW_AT_name
	.byte	9                               # DW_AT_const_value
	.byte	0                               # End Of Children Mark
	.byte	5                               # Abbrev [5] 0x110:0x7 DW_TAG_base_type
	.word	.Linfo_string5                  # DW_AT_name
	.byte	7                               # DW_AT_encoding
	.byte	4                               # DW_AT_byte_size
	.byte	9                               # Abbrev [9] 0x117:0xb DW_TAG_typedef
	.word	290                             # DW_AT_type
	.word	.Linfo_string17                 # DW_AT_name
	.byte	3                               # DW_AT_decl_file
	.byte	134                             # DW_AT_decl_line
	.byte	5                               # Abbrev [5] 0x122:0x7 DW_TAG_base_type
	.word	.Linfo_string16                 # DW_AT_name
	.byte	7                               # DW_AT_encoding
	.byte	8                               # DW_AT_byte_size
	.byte	9                               # Abbrev [9] 0x129:0xb DW_TAG_typedef
	.word	272                             # DW_AT_type
	.word	.Linfo_string18                 # DW_AT_name
	.byte	3                               # DW_AT_decl_file
	.byte	53                              # DW_AT_decl_line
	.byte	10                              # Abbrev [10] 0x134:0x60 DW_TAG_subprogram
	.word	.Lfunc_begin0                   # DW_AT_low_pc
	.word	.Lfunc_end0-.Lfunc_begin0       # DW_AT_high_pc
	.byte	1                               # DW_AT_frame_base
	.byte	82
                                        # DW_AT_GNU_all_call_sites
	.word	.Linfo_string22                 # DW_AT_name
	.byte	1                               # DW_AT_decl_file
	.byte	5                               # DW_AT_decl_line
                                        # DW_AT_prototyped
	.word	423                             # DW_AT_type
                                        # DW_AT_external
	.byte	11                              # Abbrev [11] 0x149:0xf DW_TAG_formal_parameter
	.word	.Ldebug_loc0                    # DW_AT_location
	.word	.Linfo_string24                 # DW_AT_name
	.byte	1                               # DW_AT_decl_file
	.byte	5                               # DW_AT_decl_line
	.word	501                             # DW_AT_type
	.byte	11                              # Abbrev [11] 0x158:0xf DW_TAG_formal_parameter
	.word	.Ldebug_loc1                    # DW_AT_location
	.word	.Linfo_string33                 # DW_AT_name
	.byte	1                               # DW_AT_decl_file
	.byte	5                               # DW_AT_decl_line
	.word	596                             # DW_AT_type
	.byte	12                              # Abbrev [12] 0x167:0x11 DW_TAG_GNU_call_site
	.word	404                             # DW_AT_abstract_origin
	.word	.Ltmp2                          # DW_AT_low_pc
	.byte	13                              # Abbrev [13] 0x170:0x7 DW_TAG_GNU_call_site_parameter
	.byte	1                               # DW_AT_location
	.byte	94
	.byte	3                               # DW_AT_GNU_call_site_value
	.byte	243
	.byte	1
	.byte	91
	.byte	0                               # End Of Children Mark
	.byte	14                              # Abbrev [14] 0x178:0x9 DW_TAG_GNU_call_site
	.word	404                             # DW_AT_abstract_origin
	.word	.Ltmp3                          # DW_AT_low_pc
	.byte	14                              # Abbrev [14] 0x181:0x9 DW_TAG_GNU_call_site
	.word	404                             # DW_AT_abstract_origin
	.word	.Ltmp7                          # DW_AT_low_pc
	.byte	15                              # Abbrev [15] 0x18a:0x9 DW_TAG_GNU_call_site
	.word	404                             # DW_AT_abstract_origin
                                        # DW_AT_GNU_tail_call
	.word	.Ltmp10                         # DW_AT_low_pc
	.byte	0                               # End Of Children Mark
	.byte	16                              # Abbrev [16] 0x194:0x13 DW_TAG_subprogram
	.word	.Linfo_string19                 # DW_AT_name
	.byte	2                               # DW_AT_decl_file
	.half	390                             # DW_AT_decl_line
                                        # DW_AT_prototyped
	.word	423                             # DW_AT_type
                                        # DW_AT_declaration
                                        # DW_AT_external
	.byte	17                              # Abbrev [17] 0x1a0:0x5 DW_TAG_formal_parameter
	.word	430                             # DW_AT_type
	.byte	18                              # Abbrev [18] 0x1a5:0x1 DW_TAG_unspecified_parameters
	.byte	0                               # End Of Children Mark
	.byte	5                               # Abbrev [5] 0x1a7:0x7 DW_TAG_base_type
	.word	.Linfo_string20                 # DW_AT_name
	.byte	5                               # DW_AT_encoding
	.byte	4                               # DW_AT_byte_size
	.byte	19                              # Abbrev [19] 0x1ae:0x5 DW_TAG_pointer_type
	.word	435                             # DW_AT_type
	.byte	20                              # Abbrev [20] 0x1b3:0x5 DW_TAG_const_type
	.word	63                              # DW_AT_type
	.byte	10                              # Abbrev [10] 0x1b8:0x26 DW_TAG_subprogram
	.word	.Lfunc_begin1                   # DW_AT_low_pc
	.word	.Lfunc_end1-.Lfunc_begin1       # DW_AT_high_pc
	.byte	1                               # DW_AT_frame_base
	.byte	82
                                        # DW_AT_GNU_all_call_sites
	.word	.Linfo_string23                 # DW_AT_name
	.byte	1                               # DW_AT_decl_file
	.byte	16                              # DW_AT_decl_line
                                        # DW_AT_prototyped
	.word	423                             # DW_AT_type
                                        # DW_AT_external
	.byte	12                              # Abbrev [12] 0x1cd:0x10 DW_TAG_GNU_call_site
	.word	478                             # DW_AT_abstract_origin
	.word	.Ltmp12                         # DW_AT_low_pc
	.byte	13                              # Abbrev [13] 0x1d6:0x6 DW_TAG_GNU_call_site_parameter
	.byte	1                               # DW_AT_location
	.byte	93
	.byte	2                               # DW_AT_GNU_call_site_value
	.byte	112
	.byte	0
	.byte	0                               # End Of Children Mark
	.byte	0                               # End Of Children Mark
	.byte	21                              # Abbrev [21] 0x1de:0x12 DW_TAG_subprogram
	.word	.Linfo_string21                 # DW_AT_name
	.byte	4                               # DW_AT_decl_file
	.byte	109                             # DW_AT_decl_line
                                        # DW_AT_prototyped
	.word	423                             # DW_AT_type
                                        # DW_AT_declaration
                                        # DW_AT_external
	.byte	17                              # Abbrev [17] 0x1e9:0x5 DW_TAG_formal_parameter
	.word	496                             # DW_AT_type
	.byte	18                              # Abbrev [18] 0x1ee:0x1 DW_TAG_unspecified_parameters
	.byte	0                               # End Of Children Mark
	.byte	22                              # Abbrev [22] 0x1f0:0x5 DW_TAG_restrict_type
	.word	430                             # DW_AT_type
	.byte	20                              # Abbrev [20] 0x1f5:0x5 DW_TAG_const_type
	.word	506                             # DW_AT_type
	.byte	9                               # Abbrev [9] 0x1fa:0xb DW_TAG_typedef
	.word	517                             # DW_AT_type
	.word	.Linfo_string32                 # DW_AT_name
	.byte	6                               # DW_AT_decl_file
	.byte	13                              # DW_AT_decl_line
	.byte	23                              # Abbrev [23] 0x205:0x2d DW_TAG_structure_type
	.word	.Linfo_string31                 # DW_AT_name
	.byte	24                              # DW_AT_byte_size
	.byte	2                               # DW_AT_decl_file
	.byte	63                              # DW_AT_decl_line
	.byte	24                              # Abbrev [24] 0x20d:0xc DW_TAG_member
	.word	.Linfo_string25                 # DW_AT_name
	.word	562                             # DW_AT_type
	.byte	2                               # DW_AT_decl_file
	.byte	64                              # DW_AT_decl_line
	.byte	0                               # DW_AT_data_member_location
	.byte	24                              # Abbrev [24] 0x219:0xc DW_TAG_member
	.word	.Linfo_string27                 # DW_AT_name
	.word	562                             # DW_AT_type
	.byte	2                               # DW_AT_decl_file
	.byte	65                              # DW_AT_decl_line
	.byte	8                               # DW_AT_data_member_location
	.byte	24                              # Abbrev [24] 0x225:0xc DW_TAG_member
	.word	.Linfo_string28                 # DW_AT_name
	.word	573                             # DW_AT_type
	.byte	2                               # DW_AT_decl_file
	.byte	66                              # DW_AT_decl_line
	.byte	16                              # DW_AT_data_member_location
	.byte	0                               # End Of Children Mark
	.byte	9                               # Abbrev [9] 0x232:0xb DW_TAG_typedef
	.word	279                             # DW_AT_type
	.word	.Linfo_string26                 # DW_AT_name
	.byte	5                               # DW_AT_decl_file
	.byte	39                              # DW_AT_decl_line
	.byte	19                              # Abbrev [19] 0x23d:0x5 DW_TAG_pointer_type
	.word	578                             # DW_AT_type
	.byte	9                               # Abbrev [9] 0x242:0xb DW_TAG_typedef
	.word	589                             # DW_AT_type
	.word	.Linfo_string30                 # DW_AT_name
	.byte	3                               # DW_AT_decl_file
	.byte	119                             # DW_AT_decl_line
	.byte	5                               # Abbrev [5] 0x24d:0x7 DW_TAG_base_type
	.word	.Linfo_string29                 # DW_AT_name
	.byte	8                               # DW_AT_encoding
	.byte	1                               # DW_AT_byte_size
	.byte	25                              # Abbrev [25] 0x254:0x1 DW_TAG_pointer_type
	.byte	0                               # End Of Children Mark
.Ldebug_info_end0:
	.section	.debug_ranges,"",@progbits
.Ldebug_ranges0:
	.word	.Lfunc_begin0
	.word	.Lfunc_end0
	.word	.Lfunc_begin1
	.word	.Lfunc_end1
	.word	0
	.word	0
	.section	.debug_str,"MS",@progbits,1
.Linfo_string0:
	.asciz	"clang version 22.1.8"          # string offset=0
.Linfo_string1:
	.asciz	"prints.c"                      # string offset=21
.Linfo_string2:
	.asciz	"/work/main/tests/spincc"       # string offset=30
.Linfo_string3:
	.asciz	"char"                          # string offset=54
.Linfo_string4:
	.asciz	"__ARRAY_SIZE_TYPE__"           # string offset=59
.Linfo_string5:
	.asciz	"unsigned int"                  # string offset=79
.Linfo_string6:
	.asciz	"DROP"                          # string offset=92
.Linfo_string7:
	.asciz	"DROP_PENDING"                  # string offset=97
.Linfo_string8:
	.asciz	"PROCESS_DATA"                  # string offset=110
.Linfo_string9:
	.asciz	"PROCESS_DATA_PENDING"          # string offset=123
.Linfo_string10:
	.asciz	"PROCEED"                       # string offset=144
.Linfo_string11:
	.asciz	"PROCEED_PENDING"               # string offset=152
.Linfo_string12:
	.asciz	"SUCCESS"                       # string offset=168
.Linfo_string13:
	.asciz	"SUCCESS_PENDING"               # string offset=176
.Linfo_string14:
	.asciz	"FAIL"                          # string offset=192
.Linfo_string15:
	.asciz	"SEGV"                          # string offset=197
.Linfo_string16:
	.asciz	"unsigned long long"            # string offset=202
.Linfo_string17:
	.asciz	"uint64_t"                      # string offset=221
.Linfo_string18:
	.asciz	"uintptr_t"                     # string offset=230
.Linfo_string19:
	.asciz	"spin_printf"                   # string offset=240
.Linfo_string20:
	.asciz	"int"                           # string offset=252
.Linfo_string21:
	.asciz	"printf"                        # string offset=256
.Linfo_string22:
	.asciz	"prints"                        # string offset=263
.Linfo_string23:
	.asciz	"main"                          # string offset=270
.Linfo_string24:
	.asciz	"p"                             # string offset=275
.Linfo_string25:
	.asciz	"length"                        # string offset=277
.Linfo_string26:
	.asciz	"ptl_size_t"                    # string offset=284
.Linfo_string27:
	.asciz	"offset"                        # string offset=295
.Linfo_string28:
	.asciz	"base"                          # string offset=302
.Linfo_string29:
	.asciz	"unsigned char"                 # string offset=307
.Linfo_string30:
	.asciz	"uint8_t"                       # string offset=321
.Linfo_string31:
	.asciz	"ptl_payload"                   # string offset=329
.Linfo_string32:
	.asciz	"ptl_payload_t"                 # string offset=341
.Linfo_string33:
	.asciz	"state"                         # string offset=355
	.ident	"clang version 22.1.8"
	.section	".note.GNU-stack","",@progbits
	.addrsig
	.addrsig_sym prints
	.section	.debug_line,"",@progbits
.Lline_table_start0:
