/** An instruction of a compiled expression; `op` is one of the static codes. */
export declare class Inst {
  static readonly ALT: number
  static readonly ALT_MATCH: number
  static readonly CAPTURE: number
  static readonly EMPTY_WIDTH: number
  static readonly FAIL: number
  static readonly MATCH: number
  static readonly NOP: number
  static isRuneOp(op: number): boolean
  readonly op: number
  readonly out: number
  readonly arg: number
  readonly runes: Int32Array | readonly number[]
}

export declare const RE2Flags: { readonly PERL: number; readonly FOLD_CASE: number }

/** An expression as a tree. */
interface Regexp {
  readonly op: number
}

export declare const Parser: { parse(source: string, flags: number): Regexp }
export declare const Simplify: { simplify(expression: Regexp): Regexp }
export declare const Compiler: {
  compileRegexp(expression: Regexp): { readonly inst: readonly Inst[]; readonly start: number }
}
