import process from 'node:process'
import { parseArgs } from 'node:util'
import type { Call } from '../candidates/candidate.ts'
import { withoutLimits } from '../candidates/sluice.ts'
import { compareSides, type Side, written } from '../measuring/sides.ts'

/**
 * Prints what a call pays for each feature: as CPU time of this gateway beside that of one without, alternately on the
 * same core, as a multiple and as a difference. A second gateway shows how much two of the same differ. Features that
 * are on by default have a limit for calls that do not use them; `--check` fails if a median ratio exceeds it.
 */
interface Feature {
  readonly with: SideName
  readonly without: SideName
  readonly limit?: number
}

const ALL = ['session', 'remembered prompts'] as const
const GUARD = { name: 'words', do: 'block', match: { words: ['forbidden'] } }

/** The gateways that are measured. */
const SIDES = {
  'all defaults': {},
  'the same again': {},
  'prompts not remembered': { sections: { options: { remember_prompts: 0 } } },
  'no affinity': { sections: { options: { affinity: { enabled: false } } } },
  'no limits': { sections: withoutLimits },
  session: { uses: ['session'] },
  'remembered prompts': { uses: ['remembered prompts'] },
  'all of these': { uses: ALL },
  guard: { sections: { guards: [GUARD] } },
  'content, metadata': { sections: { content_log: { what: 'metadata' } } },
  'content, full': { sections: { content_log: { what: 'full' } } },
} satisfies Readonly<Record<string, Side>>
type SideName = keyof typeof SIDES

const FEATURES: Readonly<Record<string, Feature>> = {
  nothing: { with: 'the same again', without: 'all defaults' },
  'remembered prompts, unused': { with: 'all defaults', without: 'prompts not remembered', limit: 1.02 },
  'affinity, unused': { with: 'all defaults', without: 'no affinity', limit: 1.03 },
  'limits of key, model, channel and address': { with: 'all defaults', without: 'no limits' },
  'a session': { with: 'session', without: 'all defaults' },
  'remembered prompts': { with: 'remembered prompts', without: 'all defaults' },
  'limits, a session and remembered prompts': { with: 'all of these', without: 'no limits' },
  'a guard that looks for a word': { with: 'guard', without: 'all defaults' },
  'metadata in the content log': { with: 'content, metadata', without: 'all defaults' },
  'all content in the content log': { with: 'content, full', without: 'all defaults' },
}

const { values: options } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, check: { type: 'boolean', default: false } },
})
const ROUNDS = options.quick ? 15 : 81

const CALL: Call = { method: 'POST', client: 'chat', upstream: 'chat', behaviour: 'whole', bytes: 2_000 }

const { cost, ratio } = await compareSides<SideName>(SIDES, CALL, ROUNDS)

const micros = cost('all defaults').median
console.log(`a call of 2 KB: ${micros.toFixed(0)} µs of CPU\n`)
console.log('| Feature | costs, µs | with it, beside without |\n| --- | --- | --- |')
for (const [name, feature] of Object.entries(FEATURES)) {
  const found = ratio(feature.with, feature.without)
  const added = (found.median - 1) * cost(feature.without).median
  console.log(`| ${name} | ${added.toFixed(1)} | ${written(found)} |`)
  if (feature.limit === undefined || found.median <= feature.limit) continue
  console.log(`${name} cost more than ${((feature.limit - 1) * 100).toFixed(0)} %`)
  if (options.check) process.exitCode = 1
}
