/** A figure with its labels, as it is shown. */
export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** A named figure of the gateway. */
export interface Metric {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  samples(): Iterable<Sample>
}

/** Label values in the order of the metric's label names. */
type Values = readonly string[]

/**
 * What is kept by the label values so far, one after the other: to put them together would cost more than to
 * look each up.
 */
interface Branch<Cell> {
  readonly branches: Map<string, Branch<Cell>>
  /** Where there are no more of them. */
  cell?: Cell
}

abstract class Series<Cell> {
  readonly name: string
  readonly help: string
  readonly #labels: readonly string[]
  readonly #root: Branch<Cell> = { branches: new Map() }

  constructor(name: string, help: string, labels: readonly string[]) {
    this.name = name
    this.help = help
    this.#labels = labels
  }

  protected abstract fresh(): Cell

  /** The cell for these label values, made at first use. */
  protected cell(values: Values): Cell {
    let branch = this.#root
    for (const value of values) {
      let next = branch.branches.get(value)
      if (!next) branch.branches.set(value, (next = { branches: new Map() }))
      branch = next
    }
    return (branch.cell ??= this.fresh())
  }

  protected *labelled(): Iterable<[Record<string, string>, Cell]> {
    for (const [values, cell] of cellsOf([], this.#root))
      yield [Object.fromEntries(this.#labels.map((label, i) => [label, values[i] ?? ''])), cell]
  }
}

function* cellsOf<Cell>(values: Values, { branches, cell }: Branch<Cell>): Iterable<[Values, Cell]> {
  if (cell !== undefined) yield [values, cell]
  for (const [value, branch] of branches) yield* cellsOf([...values, value], branch)
}

/** A sum that only grows. */
export class Counter extends Series<{ sum: number }> implements Metric {
  readonly type = 'counter'

  add(amount: number, ...values: string[]): void {
    this.cell(values).sum += amount
  }

  protected fresh(): { sum: number } {
    return { sum: 0 }
  }

  *samples(): Iterable<Sample> {
    for (const [labels, { sum }] of this.labelled()) yield { name: this.name, labels, value: sum }
  }
}

/** A figure that is looked up when somebody asks; a `counter` where it only grows. */
export class Gauge implements Metric {
  readonly type: 'gauge' | 'counter'
  readonly name: string
  readonly help: string
  readonly #read: () => number

  constructor(name: string, help: string, read: () => number, type: 'gauge' | 'counter' = 'gauge') {
    this.name = name
    this.help = help
    this.#read = read
    this.type = type
  }

  samples(): Sample[] {
    return [{ name: this.name, labels: {}, value: this.#read() }]
  }
}

/** Things that are so at the moment, each by its labels with the value 1. */
export class LabelSetGauge implements Metric {
  readonly type = 'gauge'
  readonly name: string
  readonly help: string
  readonly #read: () => Iterable<Readonly<Record<string, string>>>

  constructor(name: string, help: string, read: () => Iterable<Readonly<Record<string, string>>>) {
    this.name = name
    this.help = help
    this.#read = read
  }

  *samples(): Iterable<Sample> {
    for (const labels of this.#read()) yield { name: this.name, labels, value: 1 }
  }
}

interface Distribution {
  readonly buckets: number[]
  sum: number
  count: number
}

/** How figures spread over bounds, ascending. */
export class Histogram extends Series<Distribution> implements Metric {
  readonly type = 'histogram'
  readonly #bounds: readonly number[]

  constructor(name: string, help: string, labels: readonly string[], bounds: readonly number[]) {
    super(name, help, labels)
    this.#bounds = bounds
  }

  record(value: number, ...values: string[]): void {
    const cell = this.cell(values)
    cell.sum += value
    cell.count += 1
    let i = 0
    while (i < this.#bounds.length && value > (this.#bounds[i] ?? 0)) i += 1
    cell.buckets[i] = (cell.buckets[i] ?? 0) + 1
  }

  protected fresh(): Distribution {
    return { buckets: Array.from({ length: this.#bounds.length + 1 }, () => 0), sum: 0, count: 0 }
  }

  *samples(): Iterable<Sample> {
    for (const [labels, { buckets, sum, count }] of this.labelled()) {
      let cumulated = 0
      for (const [i, bound] of this.#bounds.entries()) {
        cumulated += buckets[i] ?? 0
        yield { name: `${this.name}_bucket`, labels: { ...labels, le: String(bound) }, value: cumulated }
      }
      yield { name: `${this.name}_bucket`, labels: { ...labels, le: '+Inf' }, value: count }
      yield { name: `${this.name}_sum`, labels, value: sum }
      yield { name: `${this.name}_count`, labels, value: count }
    }
  }
}
