import type { Round } from '../measuring/figure.ts'
import { type Spread, spread } from '../measuring/statistics.ts'

/** The result of one candidate in one scenario. */
export interface ScenarioResult {
  readonly name: string
  /** Cost in the scenario's unit. */
  readonly cost: Spread
  /** Medians of the ratios within each round; undefined if the forwarder was not measured. */
  readonly overForwarder: Spread | undefined
  readonly overNginx: Spread | undefined
  /**
   * Cost as a multiple of the cost of the other gateway of a pair: the one without consoles, or the earlier
   * checkout.
   */
  readonly overPair: Spread | undefined
  /** Cost as a multiple of the steady cost in the same process. */
  readonly overSteady: Spread | undefined
  /** Cost of the peer as a multiple of this candidate's cost. */
  readonly portkeyOver: Spread | undefined
  /** Median latency in microseconds: the median over the rounds. */
  readonly p50: number | undefined
  readonly p99: number | undefined
  /**
   * Medians over the rounds, in microseconds: p50 and p99 in addition to those without a gateway, and p50 in
   * addition to the forwarder's.
   */
  readonly p50Added: number | undefined
  readonly p99Added: number | undefined
  readonly p50OverForwarder: number | undefined
}

/** Summary of the rounds for each candidate, in the order of these names. */
export function findingsOf(rounds: readonly Round[], order: readonly string[]): ScenarioResult[] {
  const names = Object.keys(Object.assign({}, ...rounds) as Round).toSorted(
    (a, b) => rank(a, order) - rank(b, order),
  )
  return names.map((name) => {
    const over = (top: string, bottom: string): Spread | undefined =>
      spread(each(rounds, ({ [top]: above, [bottom]: below }) => ratio(above?.cost, below?.cost)))
    const above = (share: 'p50' | 'p99', top: string, bottom: string): number | undefined =>
      spread(each(rounds, (round) => difference(round[top]?.[share], round[bottom]?.[share])))?.median
    return {
      name,
      cost: spread(each(rounds, (round) => round[name]?.cost)) ?? { median: 0, p25: 0, p75: 0 },
      overForwarder: over(name, baseOf(name, names)),
      overNginx: over(name, 'nginx'),
      overPair: over(name, otherOf(name)),
      overSteady: spread(each(rounds, ({ [name]: own }) => ratio(own?.cost, own?.steady))),
      portkeyOver: over('portkey', name),
      p50: spread(each(rounds, (round) => round[name]?.p50))?.median,
      p99: spread(each(rounds, (round) => round[name]?.p99))?.median,
      p50Added: above('p50', name, 'direct'),
      p99Added: above('p99', name, 'direct'),
      p50OverForwarder: above('p50', name, 'forwarder'),
    }
  })
}

/** The other gateway of a pair, under the same conditions; empty if there is none. */
function otherOf(name: string): string {
  if (name === 'watched') return 'sluice'
  return name.startsWith('sluice') ? name.replace('sluice', 'earlier') : ''
}

/** The rank of a name, or of the part before its comma. */
function rank(name: string, order: readonly string[]): number {
  const at = order.indexOf(name)
  return at === -1 ? order.indexOf(name.split(',', 1)[0] ?? '') : at
}

/** The forwarder under the same conditions, which follow after a comma in both names. */
function baseOf(name: string, names: readonly string[]): string {
  if (names.includes('bare server')) return 'bare server'
  const comma = name.indexOf(',')
  return comma === -1 ? 'forwarder' : `forwarder${name.slice(comma)}`
}

function each(rounds: readonly Round[], value: (round: Round) => number | undefined): number[] {
  return rounds.map(value).filter((one) => one !== undefined)
}

function ratio(above: number | undefined, below: number | undefined): number | undefined {
  return !above || !below ? undefined : above / below
}

function difference(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? undefined : one - other
}
