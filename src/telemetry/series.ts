/** A value of a metric with its labels. */
export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** A metric with its name, help text, type and values. */
export interface Metric {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  samples(): Iterable<Sample>
}

/** Label values in the order of the metric's label names. */
type Values = readonly string[]

/**
 * Node of a tree with one level per label. Looking up values in it is faster than joining them to one key.
 */
interface LabelNode<Cell> {
  readonly branches: Map<string, LabelNode<Cell>>
  /** The value for these labels; only a leaf of the tree has one. */
  cell?: Cell
}

abstract class Series<Cell> {
  readonly name: string
  readonly help: string
  readonly #labels: readonly string[]
  readonly #root: LabelNode<Cell> = { branches: new Map() }

  constructor(name: string, help: string, labels: readonly string[]) {
    this.name = name
    this.help = help
    this.#labels = labels
  }

  protected abstract createCell(): Cell

  /** Returns the cell with the value for these labels; creates it at the first use. */
  protected cell(values: Values): Cell {
    let branch = this.#root
    for (const value of values) {
      let next = branch.branches.get(value)
      if (!next) branch.branches.set(value, (next = { branches: new Map() }))
      branch = next
    }
    return (branch.cell ??= this.createCell())
  }

  protected *labelled(): Iterable<[Record<string, string>, Cell]> {
    for (const [values, cell] of cellsOf([], this.#root))
      yield [Object.fromEntries(this.#labels.map((label, i) => [label, values[i] ?? ''])), cell]
  }
}

function* cellsOf<Cell>(values: Values, { branches, cell }: LabelNode<Cell>): Iterable<[Values, Cell]> {
  if (cell !== undefined) yield [values, cell]
  for (const [value, branch] of branches) yield* cellsOf([...values, value], branch)
}

/** A counter: a sum that only grows. */
export class Counter extends Series<{ sum: number }> implements Metric {
  readonly type = 'counter'
  readonly #known: () => Iterable<string>

  /** `known` returns the values of the only label that are exported at 0, before they are counted. */
  constructor(
    name: string,
    help: string,
    labels: readonly string[],
    known: () => Iterable<string> = () => [],
  ) {
    super(name, help, labels)
    this.#known = known
    if (labels.length === 0) this.cell([])
  }

  add(amount: number, values: Values): void {
    this.cell(values).sum += amount
  }

  protected createCell(): { sum: number } {
    return { sum: 0 }
  }

  *samples(): Iterable<Sample> {
    for (const value of this.#known()) this.cell([value])
    for (const [labels, { sum }] of this.labelled()) yield { name: this.name, labels, value: sum }
  }
}

interface Distribution {
  readonly buckets: number[]
  sum: number
  count: number
}

/** Histogram with ascending upper bounds of buckets. */
export class Histogram extends Series<Distribution> implements Metric {
  readonly type = 'histogram'
  readonly #bounds: readonly number[]

  constructor(name: string, help: string, labels: readonly string[], bounds: readonly number[]) {
    super(name, help, labels)
    this.#bounds = bounds
  }

  record(value: number, values: Values): void {
    const cell = this.cell(values)
    cell.sum += value
    cell.count += 1
    let i = 0
    while (i < this.#bounds.length && value > (this.#bounds[i] ?? 0)) i += 1
    cell.buckets[i] = (cell.buckets[i] ?? 0) + 1
  }

  protected createCell(): Distribution {
    return { buckets: Array.from({ length: this.#bounds.length + 1 }, () => 0), sum: 0, count: 0 }
  }

  *samples(): Iterable<Sample> {
    for (const [labels, { buckets, sum, count }] of this.labelled()) {
      let cumulative = 0
      for (const [i, bound] of this.#bounds.entries()) {
        cumulative += buckets[i] ?? 0
        yield { name: `${this.name}_bucket`, labels: { ...labels, le: String(bound) }, value: cumulative }
      }
      yield { name: `${this.name}_bucket`, labels: { ...labels, le: '+Inf' }, value: count }
      yield { name: `${this.name}_sum`, labels, value: sum }
      yield { name: `${this.name}_count`, labels, value: count }
    }
  }
}

/** The content type of `metricsText`. */
export const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** Formats metrics in Prometheus' text format. */
export function metricsText(metrics: Iterable<Metric>): string {
  const lines: string[] = []
  for (const metric of metrics) {
    lines.push(`# HELP ${metric.name} ${metric.help}`, `# TYPE ${metric.name} ${metric.type}`)
    for (const { name, labels, value } of metric.samples()) {
      const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`)
      lines.push(`${name}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${value}`)
    }
  }
  return `${lines.join('\n')}\n`
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
