import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { randomFrom } from '../../test/fixtures/random.ts'
import { earlierCheckout } from '../candidates/sluice.ts'
import { CANDIDATES, type CandidateName } from '../candidates/candidates.ts'
import { commitCost } from './commit-cost.ts'
import { consolesOf } from './consoles/open-consoles.ts'
import { cores } from '../measuring/cores.ts'
import { amongOthers, withConsoles, withEarlier } from './comparison.ts'
import { type ScenarioResult, findingsOf } from './scenario-result.ts'
import { keep, type Verdict } from './limits.ts'
import { STARTS } from './kinds/start-up.ts'
import { measure, warmUp } from './measure.ts'
import { isStartedAnew, SCENARIOS, type Scenario, type ScenarioName } from './scenarios.ts'
import { openTestBed } from './test-bed.ts'
import { tableOf } from './table.ts'

const USAGE = `npm run bench -- [--quick] [--only SCENARIO]… [--json] [--check | --keep] [--seed NUMBER]
              [--consoles NUMBER | --against FOLDER]

Measures this gateway beside others, in one run, and prints ratios. With --consoles, measures it
beside another of its kind, whose log so many consoles show meanwhile, with Live on. With --against,
measures it beside another checkout of it in that folder, installed and built. --check ends with 1
where a figure is worse, twice, than what limits.json keeps; --keep writes the figures of this run there. Scenarios:
  ${Object.keys(SCENARIOS).join('\n  ')}
`

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    consoles: { type: 'string', default: '0' },
    against: { type: 'string' },
    check: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
    only: { type: 'string', multiple: true, default: [] },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
    help: { type: 'boolean', default: false },
  },
})
const consoleCount = Number(options.consoles)
if (options.against !== undefined) earlierCheckout.folder = resolve(options.against)
const compared = consoleCount > 0 ? withConsoles : options.against === undefined ? amongOthers : withEarlier
const comparison = compared(options.quick)

interface Result {
  readonly scenario: ScenarioName
  readonly title: string
  readonly unit: string
  readonly rounds: number
  readonly findings: readonly ScenarioResult[]
  readonly goals: readonly Verdict[]
  readonly kept: readonly Verdict[]
}

/** Prints a line that is not part of the result. */
function note(text: string): void {
  if (options.json) console.error(text)
  else console.log(text)
}

function selectedScenarios(): ScenarioName[] {
  const all = Object.keys(SCENARIOS) as ScenarioName[]
  if (options.only.length > 0) return all.filter((name) => options.only.includes(name))
  return all.filter((name) => comparison.has(SCENARIOS[name]) && !comparison.leavesOut(SCENARIOS[name]))
}

async function main(): Promise<number> {
  const names = selectedScenarios()
  const random = randomFrom(Number(options.seed))
  const { effort } = comparison
  note(`node ${process.version}, seed ${options.seed}`)
  note(
    cores
      ? `what is measured runs on core ${cores.measured}, generator and upstream on ${cores.others}`
      : 'nothing is pinned: there is one core, or no taskset',
  )
  const needed = new Set(names.flatMap((name) => comparison.candidatesOf(SCENARIOS[name])))
  await using testBed = await openTestBed(Object.keys(CANDIDATES).filter(isNeeded))
  for (const line of testBed.skipped) note(line)
  if (names.some((name) => !isStartedAnew(SCENARIOS[name]))) await warmUp(testBed, effort)
  await using consoles = await consolesOf(testBed.running.get('watched')?.port, consoleCount)
  if (consoles) note(`${consoleCount} consoles show the log of the gateway that is watched`)
  const results: Result[] = []
  for (const name of names) results.push(await measured(name))
  if (options.check) for (const [index, result] of results.entries()) results[index] = await confirmed(result)
  const commit = commitCost()
  note(`\none commit on this disk: p50 ${commit.p50.toFixed(2)} ms, p99 ${commit.p99.toFixed(2)} ms`)
  if (options.json) console.log(JSON.stringify({ seed: Number(options.seed), commit, results }, null, 2))
  if (options.keep) keep(results)
  return reportLimits(results)

  function isNeeded(name: string): name is CandidateName {
    return needed.has(name as CandidateName)
  }

  /** Measures a scenario with worse figures once more. Those that are worse again count: the machine may have been busy. */
  async function confirmed(first: Result): Promise<Result> {
    const worse = first.kept.filter(({ isMet }) => !isMet).map(nameOf)
    if (worse.length === 0) return first
    note(`\n${worse.join(' and ')}: worse, so measured once more`)
    const second = await measured(first.scenario)
    return { ...second, kept: second.kept.filter((verdict) => worse.includes(nameOf(verdict))) }
  }

  async function measured(name: ScenarioName): Promise<Result> {
    const scenario: Scenario = SCENARIOS[name]
    const { title, unit } = scenario
    const began = performance.now()
    const rounds = await measure(testBed, scenario, comparison.candidatesOf(scenario), effort, random)
    const seconds = ((performance.now() - began) / 1000).toFixed(0)
    const findings = findingsOf(rounds, [...Object.keys(CANDIDATES), ...STARTS])
    note(`\n### ${name}: ${title} (${rounds.length} rounds, ${seconds} s)\n\n${tableOf(unit, findings)}`)
    const verdicts = comparison.verdicts(name, findings)
    return { scenario: name, title, unit, rounds: rounds.length, findings, ...verdicts }
  }
}

function nameOf({ scenario, figure }: Verdict): string {
  return `${scenario}, ${figure}`
}

/** Prints unreached targets and regressions. Returns the exit code. */
function reportLimits(results: readonly Result[]): number {
  for (const goal of results.flatMap(({ goals }) => goals))
    if (!goal.isMet)
      note(`goal not reached: ${nameOf(goal)}: ${goal.found.toFixed(2)}, aimed at ${goal.limit}`)
  if (!options.check) return 0
  const worse = results.flatMap(({ kept }) => kept).filter(({ isMet }) => !isMet)
  for (const one of worse)
    note(`WORSE: ${nameOf(one)}: ${one.found.toFixed(2)}, kept to ${one.limit.toFixed(2)}`)
  return worse.length > 0 ? 1 : 0
}

const unknown = options.only.find(
  (name) => !(name in SCENARIOS) || !comparison.has(SCENARIOS[name as ScenarioName]),
)
if (unknown !== undefined) {
  const why =
    unknown in SCENARIOS
      ? `${unknown} starts processes of its own, which have no consoles`
      : `there is no scenario ${unknown}`
  console.error(`${why}\n\n${USAGE}`)
  process.exitCode = 1
} else if (!Number.isSafeInteger(consoleCount) || consoleCount < 0) {
  console.error(`--consoles: expected a number of consoles, found ${options.consoles}\n\n${USAGE}`)
  process.exitCode = 1
} else if (options.against !== undefined && !existsSync(join(earlierCheckout.folder, 'bin/sluice.mjs'))) {
  console.error(`--against: expected a checkout of this gateway, found ${options.against}\n\n${USAGE}`)
  process.exitCode = 1
} else if (options.keep && (consoleCount > 0 || options.against !== undefined)) {
  console.error(`--keep: only ratios to the other candidates are kept\n\n${USAGE}`)
  process.exitCode = 1
} else if (options.help) console.log(USAGE)
else process.exitCode = await main()
