#include "textflag.h"

// SSE2 alone, which every amd64 processor has. Numbers are rounded after each operation, as Go does: no fused
// multiplications.

// func multiplyRows(to, weights, x []float32, stride int)
//
// Four rows at a time, as long as there are so many, and then one at a time.
TEXT ·multiplyRows(SB), NOSPLIT, $0-80
	MOVQ to_base+0(FP), DI
	MOVQ to_len+8(FP), CX
	MOVQ weights_base+24(FP), SI
	MOVQ x_base+48(FP), DX
	MOVQ x_len+56(FP), BX
	MOVQ stride+72(FP), R8
	SHLQ $2, R8
	MOVQ BX, R12
	ANDQ $~3, R12           // columns that are done four at a time

rows:
	SUBQ  $4, CX
	JLT   last
	LEAQ  (SI)(R8*1), R9
	LEAQ  (R9)(R8*1), R10
	LEAQ  (R10)(R8*1), R11
	XORPS X0, X0
	XORPS X1, X1
	XORPS X2, X2
	XORPS X3, X3
	XORQ  AX, AX
	JMP   columns4

four4:
	MOVUPS (DX)(AX*4), X4
	MOVUPS (SI)(AX*4), X5
	MULPS  X4, X5
	ADDPS  X5, X0
	MOVUPS (R9)(AX*4), X6
	MULPS  X4, X6
	ADDPS  X6, X1
	MOVUPS (R10)(AX*4), X7
	MULPS  X4, X7
	ADDPS  X7, X2
	MOVUPS (R11)(AX*4), X8
	MULPS  X4, X8
	ADDPS  X8, X3
	ADDQ   $4, AX

columns4:
	CMPQ AX, R12
	JLT  four4
	JMP  more4

one4:
	MOVSS (DX)(AX*4), X4
	MOVSS (SI)(AX*4), X5
	MULSS X4, X5
	ADDSS X5, X0
	MOVSS (R9)(AX*4), X6
	MULSS X4, X6
	ADDSS X6, X1
	MOVSS (R10)(AX*4), X7
	MULSS X4, X7
	ADDSS X7, X2
	MOVSS (R11)(AX*4), X8
	MULSS X4, X8
	ADDSS X8, X3
	ADDQ  $1, AX

more4:
	CMPQ AX, BX
	JLT  one4

	// Of each row a, b, c and d: (a + c) + (b + d).
	MOVAPS   X0, X4
	UNPCKLPS X1, X0
	UNPCKHPS X1, X4
	ADDPS    X4, X0         // a+c and b+d, of two rows in turn
	MOVAPS   X2, X5
	UNPCKLPS X3, X2
	UNPCKHPS X3, X5
	ADDPS    X5, X2
	MOVAPS   X0, X6
	MOVLHPS  X2, X0         // a+c of four rows
	MOVHLPS  X6, X2         // and b+d
	ADDPS    X2, X0
	MOVUPS   X0, (DI)
	ADDQ     $16, DI
	LEAQ     (R11)(R8*1), SI
	JMP      rows

last:
	ADDQ $4, CX

row:
	SUBQ  $1, CX
	JLT   done
	XORPS X0, X0
	XORQ  AX, AX
	JMP   columns

four:
	MOVUPS (DX)(AX*4), X4
	MOVUPS (SI)(AX*4), X5
	MULPS  X4, X5
	ADDPS  X5, X0
	ADDQ   $4, AX

columns:
	CMPQ AX, R12
	JLT  four
	JMP  more

one:
	MOVSS (DX)(AX*4), X4
	MULSS (SI)(AX*4), X4
	ADDSS X4, X0
	ADDQ  $1, AX

more:
	CMPQ    AX, BX
	JLT     one
	MOVHLPS X0, X1
	ADDPS   X1, X0
	MOVAPS  X0, X1
	SHUFPS  $0x55, X1, X1
	ADDSS   X1, X0
	MOVSS   X0, (DI)
	ADDQ    $4, DI
	ADDQ    R8, SI
	JMP     row

done:
	RET

// func stepRow(weights, squares, steps, x []float32, e float32)
TEXT ·stepRow(SB), NOSPLIT, $0-100
	MOVQ   weights_base+0(FP), DI
	MOVQ   squares_base+24(FP), SI
	MOVQ   steps_base+48(FP), DX
	MOVQ   x_base+72(FP), R8
	MOVQ   x_len+80(FP), CX
	MOVSS  e+96(FP), X0
	SHUFPS $0, X0, X0
	SUBQ   $4, CX
	JLT    rest

four:
	MOVUPS (R8), X1
	MULPS  X0, X1   // the gradient
	MOVAPS X1, X2
	MULPS  X2, X2
	MOVUPS (SI), X3
	ADDPS  X2, X3
	MOVUPS X3, (SI)
	MOVUPS (DX), X4
	MULPS  X4, X1
	MOVUPS (DI), X5
	SUBPS  X1, X5
	MOVUPS X5, (DI)
	ADDQ   $16, DI
	ADDQ   $16, SI
	ADDQ   $16, DX
	ADDQ   $16, R8
	SUBQ   $4, CX
	JGE    four

rest:
	ADDQ $4, CX
	JZ   done

one:
	MOVSS  (R8), X1
	MULSS  X0, X1
	MOVAPS X1, X2
	MULSS  X2, X2
	ADDSS  (SI), X2
	MOVSS  X2, (SI)
	MULSS  (DX), X1
	MOVSS  (DI), X5
	SUBSS  X1, X5
	MOVSS  X5, (DI)
	ADDQ   $4, DI
	ADDQ   $4, SI
	ADDQ   $4, DX
	ADDQ   $4, R8
	SUBQ   $1, CX
	JNZ    one

done:
	RET

// func addSlots(sums *[slot]float32, table []float32, at []uint32)
TEXT ·addSlots(SB), NOSPLIT, $0-56
	MOVQ   sums+0(FP), DI
	MOVQ   table_base+8(FP), SI
	MOVQ   at_base+32(FP), DX
	MOVQ   at_len+40(FP), CX
	MOVUPS (DI), X0
	MOVUPS 16(DI), X1

place:
	SUBQ   $1, CX
	JLT    done
	MOVL   (DX), AX
	ADDQ   $4, DX
	MOVUPS (SI)(AX*4), X2
	MOVUPS 16(SI)(AX*4), X3
	ADDPS  X2, X0
	ADDPS  X3, X1
	JMP    place

done:
	MOVUPS X0, (DI)
	MOVUPS X1, 16(DI)
	RET

DATA damping<>+0(SB)/4, $0.001
GLOBL damping<>(SB), RODATA|NOPTR, $4

// func stepSlots(weights, squares []float32, at []uint32, errors *[slot]float32, rate float32)
TEXT ·stepSlots(SB), NOSPLIT, $0-84
	MOVQ   weights_base+0(FP), DI
	MOVQ   squares_base+24(FP), SI
	MOVQ   at_base+48(FP), DX
	MOVQ   at_len+56(FP), CX
	MOVQ   errors+72(FP), BX
	MOVSS  rate+80(FP), X6
	SHUFPS $0, X6, X6
	MOVSS  damping<>(SB), X7
	SHUFPS $0, X7, X7
	MOVUPS (BX), X0
	MOVUPS 16(BX), X1
	MOVAPS X0, X2
	MULPS  X2, X2           // squares of the errors
	MOVAPS X1, X3
	MULPS  X3, X3
	MULPS  X6, X0           // and rate times them
	MULPS  X6, X1

place:
	SUBQ   $1, CX
	JLT    done
	MOVL   (DX), AX
	ADDQ   $4, DX
	MOVUPS (SI)(AX*4), X8
	MOVUPS 16(SI)(AX*4), X9
	ADDPS  X2, X8
	ADDPS  X3, X9
	MOVUPS X8, (SI)(AX*4)
	MOVUPS X9, 16(SI)(AX*4)
	ADDPS  X7, X8
	ADDPS  X7, X9
	SQRTPS X8, X8
	SQRTPS X9, X9
	MOVAPS X0, X10
	MOVAPS X1, X11
	DIVPS  X8, X10
	DIVPS  X9, X11
	MOVUPS (DI)(AX*4), X12
	MOVUPS 16(DI)(AX*4), X13
	SUBPS  X10, X12
	SUBPS  X11, X13
	MOVUPS X12, (DI)(AX*4)
	MOVUPS X13, 16(DI)(AX*4)
	JMP    place

done:
	RET

DATA logistics<>+0(SB)/4, $88.0             // farOdds
DATA logistics<>+4(SB)/4, $-1.44269504089
DATA logistics<>+8(SB)/4, $0.69314718056
DATA logistics<>+12(SB)/4, $0.00138888889   // 1/720
DATA logistics<>+16(SB)/4, $0.00833333333   // 1/120
DATA logistics<>+20(SB)/4, $0.0416666667    // 1/24
DATA logistics<>+24(SB)/4, $0.166666667     // 1/6
DATA logistics<>+28(SB)/4, $0.5
DATA logistics<>+32(SB)/4, $1.0
DATA logistics<>+36(SB)/4, $127
DATA logistics<>+40(SB)/4, $-88.0
GLOBL logistics<>(SB), RODATA|NOPTR, $44

#define CONSTANT(offset, to) \
	MOVSS  logistics<>+offset(SB), to; \
	SHUFPS $0, to, to

// func logistics(to, odds *[slot]float32)
TEXT ·logistics(SB), NOSPLIT, $0-16
	MOVQ to+0(FP), DI
	MOVQ odds+8(FP), SI
	MOVUPS (SI), X0
	MOVUPS 16(SI), X1
	CONSTANT(0, X4)
	MINPS X4, X0
	MINPS X4, X1
	CONSTANT(40, X4)
	MAXPS X4, X0
	MAXPS X4, X1
	CONSTANT(4, X4)
	MULPS X4, X0
	MULPS X4, X1
	CVTPS2PL X0, X2          // to the nearest whole number
	CVTPS2PL X1, X3
	CVTPL2PS X2, X4
	CVTPL2PS X3, X5
	SUBPS X4, X0
	SUBPS X5, X1
	CONSTANT(8, X4)
	MULPS X4, X0             // t
	MULPS X4, X1
	CONSTANT(12, X4)
	MOVAPS X4, X5
	CONSTANT(16, X6)
	MULPS X0, X4
	MULPS X1, X5
	ADDPS X6, X4
	ADDPS X6, X5
	CONSTANT(20, X6)
	MULPS X0, X4
	MULPS X1, X5
	ADDPS X6, X4
	ADDPS X6, X5
	CONSTANT(24, X6)
	MULPS X0, X4
	MULPS X1, X5
	ADDPS X6, X4
	ADDPS X6, X5
	CONSTANT(28, X6)
	MULPS X0, X4
	MULPS X1, X5
	ADDPS X6, X4
	ADDPS X6, X5
	CONSTANT(32, X6)
	MULPS X0, X4
	MULPS X1, X5
	ADDPS X6, X4
	ADDPS X6, X5
	MULPS X0, X4
	MULPS X1, X5
	ADDPS X6, X4
	ADDPS X6, X5
	CONSTANT(36, X7)
	PADDL X7, X2
	PADDL X7, X3
	PSLLL $23, X2
	PSLLL $23, X3
	MULPS X2, X4             // the exponential
	MULPS X3, X5
	ADDPS X6, X4
	ADDPS X6, X5
	MOVAPS X6, X0
	DIVPS X4, X0
	DIVPS X5, X6
	MOVUPS X0, (DI)
	MOVUPS X6, 16(DI)
	RET
