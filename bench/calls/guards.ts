import process from 'node:process'
import { parseArgs } from 'node:util'
import type { Call } from '../candidates/candidate.ts'
import { compareSides, written } from '../measuring/sides.ts'

/**
 * Measures what guards cost a call that none applies to: CPU time of this gateway with a guard of another user, beside
 * that of one without guards, alternately on the same core. A second gateway with the guard shows how much two of the
 * same differ. `--check` fails if the median ratio exceeds the limit.
 */
const LIMIT = 1.01

const { values: options } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, check: { type: 'boolean', default: false } },
})
const ROUNDS = options.quick ? 15 : 81

const CALL: Call = { method: 'POST', client: 'chat', upstream: 'chat', behaviour: 'stating', bytes: 2_000 }

/** A guard that checks no call of the benchmark. */
const GUARDS = [{ name: 'secrets', do: 'block', match: { secrets: true }, users: ['nobody'] }]

const { cost, ratio } = await compareSides(
  { without: {}, with: { sections: { guards: GUARDS } }, same: { sections: { guards: GUARDS } } },
  CALL,
  ROUNDS,
)
const found = ratio('with', 'without')
console.log(`a call without guards: ${cost('without').median.toFixed(0)} µs of CPU`)
console.log(`with a guard of others, beside without: ${written(found)}`)
console.log(`a second copy with a guard of others, beside without: ${written(ratio('same', 'without'))}`)
console.log(`the same twice: ${written(ratio('same', 'with'))}`)
if (found.median > LIMIT) {
  console.log(`guards cost a call more than ${((LIMIT - 1) * 100).toFixed(0)} %`)
  if (options.check) process.exitCode = 1
}
