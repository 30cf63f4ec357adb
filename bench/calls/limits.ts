import process from 'node:process'
import { parseArgs } from 'node:util'
import type { Patch } from '../../test/fixtures/patch.ts'
import type { Call } from '../candidates/candidate.ts'
import { compareSides, written } from '../measuring/sides.ts'

/**
 * Measures what it costs a call to state the limits of its key, and to read and remember those that the provider
 * states: CPU time of this gateway, beside that of a copy without both, alternately on the same core. A second copy
 * of this gateway shows how much two of the same differ. `--check` fails if the median ratio exceeds the limit.
 */
const LIMIT = 1.01

const { values: options } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, check: { type: 'boolean', default: false } },
})
const ROUNDS = options.quick ? 15 : 81

const CALL: Call = { method: 'POST', client: 'chat', upstream: 'chat', behaviour: 'stating', bytes: 2_000 }

/** What makes a copy of the gateway neither state nor read limits. */
const WITHOUT: readonly Patch[] = [
  {
    file: 'src/gateway/features.ts',
    text: '    limitHeaders(limits, settings),\n',
    by: '',
  },
  {
    file: 'src/upstreams/upstream-client.ts',
    text: '[...providers.readHeaders, ...PROVIDER_LIMIT_HEADERS]',
    by: '[...providers.readHeaders, ...PROVIDER_LIMIT_HEADERS.slice(0, 0)]',
  },
  {
    file: 'src/features/provider-limits/feature.ts',
    text: '      return keys.every(canTake) ? keys : keys.filter(canTake)\n',
    by: '      return canTake.length > 1 ? [] : keys\n',
  },
  {
    file: 'src/upstreams/provider-limits.ts',
    text: '    const kept = this.#keptOf(channel.name, key.value, model)\n    add(kept, 1, tokens)\n',
    by: '    if (tokens !== -1) return () => {}\n    const kept = this.#keptOf(channel.name, key.value, model)\n    add(kept, 1, tokens)\n',
  },
]

/**
 * What makes a copy of the gateway state six fixed headers, and read none: the least that stating limits can cost,
 * however they are counted.
 */
const FIXED: readonly Patch[] = [
  ...WITHOUT.slice(1),
  {
    file: 'src/features/limit-headers/feature.ts',
    text: '          const figures = limits.figures(now, caller, modelOf(now, record))\n          return figures && formOf(figures, Date.now())\n',
    by: '          return limits && FIXED_HEADERS\n',
  },
  {
    file: 'src/features/limit-headers/feature.ts',
    text: 'export function limitHeaders(',
    by: `const FIXED_HEADERS = {
      'x-ratelimit-limit-requests': '1000000000',
      'x-ratelimit-remaining-requests': '999999999',
      'x-ratelimit-reset-requests': '1m0s',
      'x-ratelimit-limit-tokens': '1000000000000',
      'x-ratelimit-remaining-tokens': '999999999999',
      'x-ratelimit-reset-tokens': '1m0s',
    }
    export function limitHeaders(`,
  },
]

const { cost, ratio } = await compareSides(
  {
    without: { patches: WITHOUT },
    with: { patches: [] },
    same: { patches: [] },
    fixed: { patches: FIXED },
  },
  CALL,
  ROUNDS,
)
const found = ratio('with', 'without')
console.log(`a call without limits: ${cost('without').median.toFixed(0)} µs of CPU`)
console.log(`with limits, beside without: ${written(found)}`)
console.log(`a second copy with limits, beside without: ${written(ratio('same', 'without'))}`)
console.log(`six fixed headers and nothing read, beside without: ${written(ratio('fixed', 'without'))}`)
console.log(`the same twice: ${written(ratio('same', 'with'))}`)
if (found.median > LIMIT) {
  console.log(`limits cost a call more than ${((LIMIT - 1) * 100).toFixed(0)} %`)
  if (options.check) process.exitCode = 1
}
