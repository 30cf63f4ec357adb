import { type Profiler, Session } from 'node:inspector'

/** A range of offsets in a source, the end excluded. */
type Span = readonly [start: number, end: number]

const EMPTY_SPAN: Span = [0, 0]

/**
 * The code that ran between two calls of `take`: the span of each called function, and its spans that were
 * not reached.
 */
export type CoverageDelta = ReadonlyMap<string, { readonly whole: Span; readonly missed: readonly Span[] }>

/** Collects the code that was reached so far, from V8's block counts. */
export class Coverage {
  readonly #session = new Session()
  readonly #roots: readonly string[]
  readonly #missed = new Map<string, { readonly length: number; readonly spans: readonly Span[] }>()

  /** Starts counting in the files whose URLs begin with one of `roots`. */
  constructor(roots: readonly string[]) {
    this.#roots = roots
    this.#session.connect()
    this.#post('Profiler.enable')
    this.#post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  }

  /** The number of characters of called functions, without the spans that were not reached. */
  get characters(): number {
    let sum = 0
    for (const { length, spans } of this.#missed.values()) sum += length - sizeOf(spans)
    return sum
  }

  /** Returns the code that ran since the previous call, and resets the counts. */
  take(): CoverageDelta {
    const reached = new Map<string, { whole: Span; missed: Span[] }>()
    for (const { url, functions } of this.#post('Profiler.takePreciseCoverage').result) {
      if (!this.#roots.some((root) => url.startsWith(root))) continue
      for (const { ranges, isBlockCoverage } of functions) {
        const [outer, ...inner] = ranges
        if (!outer || outer.count === 0) continue
        // Without block coverage, V8 only counts calls of the function.
        const key = `${url}:${outer.startOffset}:${outer.endOffset}${isBlockCoverage ? '' : ' called'}`
        reached.set(key, {
          whole: isBlockCoverage ? spanOf(outer) : EMPTY_SPAN,
          missed: inner.filter(({ count }) => count === 0).map(spanOf),
        })
      }
    }
    return reached
  }

  /** Whether `delta` contains code that no earlier `add` contained. */
  isNew(delta: CoverageDelta): boolean {
    for (const [name, { missed }] of delta) {
      const before = this.#missed.get(name)
      if (!before || before.spans.some((span) => !isWithin(span, missed))) return true
    }
    return false
  }

  /** Marks the code in `delta` as reached. */
  add(delta: CoverageDelta): void {
    for (const [name, { whole, missed }] of delta) {
      const before = this.#missed.get(name)
      const spans = before ? common(before.spans, missed) : missed
      this.#missed.set(name, { length: whole[1] - whole[0], spans })
    }
  }

  #post(method: 'Profiler.takePreciseCoverage'): Profiler.TakePreciseCoverageReturnType
  #post(method: string, params?: object): unknown
  #post(method: string, params?: object): unknown {
    // A session with its own thread calls back before `post` returns.
    let result: unknown
    this.#session.post(method, params, (error, returned) => {
      if (error) throw error
      result = returned
    })
    return result
  }
}

/** For a search that coverage does not guide: each input of the corpus is kept. */
export const NO_COVERAGE: Pick<Coverage, 'take' | 'isNew' | 'add' | 'characters'> = {
  characters: 0,
  take: () => new Map(),
  isNew: () => true,
  add: () => {},
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

/** The intersection of two lists of spans. */
function common(some: readonly Span[], others: readonly Span[]): Span[] {
  return some.flatMap(([start, end]) =>
    others
      .map(([from, to]): Span => [Math.max(start, from), Math.min(end, to)])
      .filter(([from, to]) => from < to),
  )
}
