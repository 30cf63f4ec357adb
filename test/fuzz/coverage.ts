import { type Profiler, Session } from 'node:inspector'

/** A stretch of a source: offsets, the end excluded. */
type Span = readonly [start: number, end: number]

const NOTHING: Span = [0, 0]

/** What ran since the last look: of each function that was called, the stretches that were not reached. */
export type CoverageDelta = ReadonlyMap<string, { readonly whole: Span; readonly missed: readonly Span[] }>

/** Code that was reached so far, by V8's own block counts. */
export class Coverage {
  readonly #session = new Session()
  readonly #roots: readonly string[]
  readonly #missed = new Map<string, { readonly length: number; readonly spans: readonly Span[] }>()

  /** Counts from now on, in the files whose URLs begin with one of these. */
  constructor(roots: readonly string[]) {
    this.#roots = roots
    this.#session.connect()
    this.#post('Profiler.enable')
    this.#post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  }

  /** Characters of functions that were called, without the stretches of them that were not reached. */
  get characters(): number {
    let sum = 0
    for (const { length, spans } of this.#missed.values()) sum += length - sizeOf(spans)
    return sum
  }

  /** What ran since it was asked last. */
  take(): CoverageDelta {
    const reached = new Map<string, { whole: Span; missed: Span[] }>()
    for (const { url, functions } of this.#post('Profiler.takePreciseCoverage').result) {
      if (!this.#roots.some((root) => url.startsWith(root))) continue
      for (const { ranges, isBlockCoverage } of functions) {
        const [outer, ...inner] = ranges
        if (!outer || outer.count === 0) continue
        // Where V8 counted a function's calls alone, nothing is known of what is in it.
        const of = `${url}:${outer.startOffset}:${outer.endOffset}${isBlockCoverage ? '' : ' called'}`
        reached.set(of, {
          whole: isBlockCoverage ? spanOf(outer) : NOTHING,
          missed: inner.filter(({ count }) => count === 0).map(spanOf),
        })
      }
    }
    return reached
  }

  /** Whether any of it had never been reached. */
  isNew(reached: CoverageDelta): boolean {
    for (const [name, { missed }] of reached) {
      const before = this.#missed.get(name)
      if (!before || before.spans.some((span) => !isWithin(span, missed))) return true
    }
    return false
  }

  /** Takes it for known. */
  add(reached: CoverageDelta): void {
    for (const [name, { whole, missed }] of reached) {
      const before = this.#missed.get(name)
      const spans = before ? common(before.spans, missed) : missed
      this.#missed.set(name, { length: whole[1] - whole[0], spans })
    }
  }

  #post(method: 'Profiler.takePreciseCoverage'): Profiler.TakePreciseCoverageReturnType
  #post(method: string, params?: object): unknown
  #post(method: string, params?: object): unknown {
    // A session with the own thread answers before `post` returns.
    let answer: unknown
    this.#session.post(method, params, (error, result) => {
      if (error) throw error
      answer = result
    })
    return answer
  }
}

function spanOf({ startOffset, endOffset }: Profiler.CoverageRange): Span {
  return [startOffset, endOffset]
}

function sizeOf(spans: readonly Span[]): number {
  return spans.reduce((sum, [start, end]) => sum + end - start, 0)
}

function isWithin([start, end]: Span, spans: readonly Span[]): boolean {
  return spans.some(([from, to]) => from <= start && end <= to)
}

/** What two lists of stretches have in common. */
function common(some: readonly Span[], others: readonly Span[]): Span[] {
  return some.flatMap(([start, end]) =>
    others
      .map(([from, to]): Span => [Math.max(start, from), Math.min(end, to)])
      .filter(([from, to]) => from < to),
  )
}
