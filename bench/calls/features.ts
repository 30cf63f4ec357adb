import process from 'node:process'
import { parseArgs } from 'node:util'
import type { Call } from '../candidates/candidate.ts'
import { compareSides, written } from '../measuring/sides.ts'

/**
 * Measures what a call pays for features that are on by default: CPU time of this gateway, beside that of one where an
 * option turns the feature off, alternately on the same core. A second gateway with all of them shows how much two of
 * the same differ. `--check` fails if a median ratio exceeds the feature's limit.
 */
const FEATURES = {
  'remembered prompts': { limit: 1.02, off: { remember_prompts: 0 } },
  affinity: { limit: 1.03, off: { affinity: { enabled: false } } },
} as const
type Feature = keyof typeof FEATURES
const NAMES = Object.keys(FEATURES) as Feature[]

const { values: options } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, check: { type: 'boolean', default: false } },
})
const ROUNDS = options.quick ? 15 : 81

const CALL: Call = { method: 'POST', client: 'chat', upstream: 'chat', behaviour: 'whole', bytes: 2_000 }

const without = Object.fromEntries(
  NAMES.map((name) => [name, { sections: { options: FEATURES[name].off } }]),
) as unknown as Record<Feature, { readonly sections: Readonly<Record<string, unknown>> }>
const { cost, ratio } = await compareSides({ on: {}, ...without, same: {} }, CALL, ROUNDS)

console.log(`a call with all of them: ${cost('on').median.toFixed(0)} µs of CPU`)
console.log(`the same twice: ${written(ratio('same', 'on'))}`)
for (const name of NAMES) {
  const found = ratio('on', name)
  console.log(
    `with ${name}, beside without: ${written(found)}; a second copy: ${written(ratio('same', name))}`,
  )
  if (found.median <= FEATURES[name].limit) continue
  console.log(`${name} cost more than ${((FEATURES[name].limit - 1) * 100).toFixed(0)} %`)
  if (options.check) process.exitCode = 1
}
