import type { ScenarioResult } from './scenario-result.ts'
import type { Spread } from '../measuring/statistics.ts'

type Column = readonly [title: string, cell: (finding: ScenarioResult) => string]

const LATENCY: readonly Column[] = [
  ['p50, ms', ({ p50 }) => milliseconds(p50)],
  ['p99, ms', ({ p99 }) => milliseconds(p99)],
  ['added p50, ms', ({ p50Added }) => milliseconds(p50Added)],
  ['added p99, ms', ({ p99Added }) => milliseconds(p99Added)],
  ['p50 over the forwarder, ms', ({ p50OverForwarder }) => milliseconds(p50OverForwarder)],
]

const FORWARDER: Column = ['× forwarder', ({ overForwarder }) => withQuartiles(overForwarder)]

const OTHERS: readonly Column[] = [
  ['× nginx', ({ overNginx }) => threeDigits(overNginx?.median)],
  ['Portkey ÷ this', ({ portkeyOver }) => threeDigits(portkeyOver?.median)],
]

const PAIR: readonly Column[] = [['× the other', ({ overPair }) => withQuartiles(overPair)]]

const STEADY: readonly Column[] = [['× steady', ({ overSteady }) => withQuartiles(overSteady)]]

/** The findings of a scenario as a Markdown table; `unit` is the unit of the costs. */
export function tableOf(unit: string, findings: readonly ScenarioResult[]): string {
  const hasLatency = findings.some(({ p50 }) => p50 !== undefined)
  const hasSteady = findings.some(({ overSteady }) => overSteady !== undefined)
  const isPair = findings.some(({ overPair }) => overPair !== undefined)
  const columns: Column[] = [
    ['', ({ name }) => name],
    [unit, ({ cost }) => (cost.median === 0 ? '' : withQuartiles(cost))],
    ...(isPair ? PAIR : [FORWARDER, ...(hasSteady ? STEADY : OTHERS)]),
    ...(hasLatency ? LATENCY : []),
  ]
  const lines = [
    columns.map(([title]) => title),
    columns.map(() => '---'),
    ...findings.map((finding) => columns.map(([, cell]) => cell(finding))),
  ]
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

function withQuartiles(values: Spread | undefined): string {
  if (!values) return ''
  return `${threeDigits(values.median)} (${threeDigits(values.p25)}–${threeDigits(values.p75)})`
}

function milliseconds(micros: number | undefined): string {
  return micros === undefined ? '' : (micros / 1000).toFixed(2)
}

/** Formats a number with three significant digits. */
function threeDigits(value: number | undefined): string {
  if (value === undefined) return ''
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3)
}
