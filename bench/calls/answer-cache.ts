import process from 'node:process'
import { parseArgs } from 'node:util'
import type { Patch } from '../../test/fixtures/patch.ts'
import type { Call } from '../candidates/candidate.ts'
import { compareSides, written } from '../measuring/sides.ts'

/**
 * Measures what the answer cache costs a call while it is off: CPU time of this gateway, beside that of a copy without
 * it, alternately on the same core. A second copy of this gateway shows how much two of the same differ. `--check` fails
 * if the median ratio exceeds the limit.
 */
const LIMIT = 1.01

const { values: options } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, check: { type: 'boolean', default: false } },
})
const ROUNDS = options.quick ? 15 : 81

const CALL: Call = { method: 'POST', client: 'chat', upstream: 'chat', behaviour: 'whole', bytes: 2_000 }

/** What makes a copy of the gateway without the cache. */
const WITHOUT: readonly Patch[] = [
  { file: 'src/gateway/features.ts', text: '    equalCalls(idempotent, cache),\n', by: '' },
]

const { cost, ratio } = await compareSides(
  { without: { patches: WITHOUT }, with: { patches: [] }, same: { patches: [] } },
  CALL,
  ROUNDS,
)
const found = ratio('with', 'without')
console.log(`a call without the cache: ${cost('without').median.toFixed(0)} µs of CPU`)
console.log(`with the cache off, beside without: ${written(found)}`)
console.log(`a second copy with the cache off, beside without: ${written(ratio('same', 'without'))}`)
console.log(`the same twice: ${written(ratio('same', 'with'))}`)
if (found.median > LIMIT) {
  console.log(`the cache costs a call more than ${((LIMIT - 1) * 100).toFixed(0)} %`)
  if (options.check) process.exitCode = 1
}
