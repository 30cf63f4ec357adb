import process from 'node:process'
import { parseArgs } from 'node:util'
import { scanObject } from '@sluice/wire/json/json-scan'
import { asciiOf, bodyOf } from '../load/requests.ts'
import { type Spread, spread } from '../measuring/statistics.ts'

/**
 * Measures the cost of scanning a request, as a ratio to `JSON.parse` in the same round: of its decoded text,
 * and of its bytes including decoding. `--check` fails if the median of the ratio to the decoded text, which
 * is the stricter one, exceeds the limit.
 */
const ROUNDS = 60
const WARM_UP = 20
/** Number of scans in one measurement. */
const REPEATS = 20
/** Limits of the ratio: not slower for requests, at most a tenth slower for text full of escapes. */
const REQUEST_LIMIT = 1
const ESCAPES_LIMIT = 1.1
const BYTES = 100_000

const { values: options } = parseArgs({
  options: { json: { type: 'boolean', default: false }, check: { type: 'boolean', default: false } },
})

interface Case {
  readonly name: string
  readonly limit: number
  readonly text: string
}

const call = { method: 'POST', client: 'chat', upstream: 'chat', behaviour: 'whole', bytes: BYTES } as const
const agent = bodyOf({ ...call, content: 'agent' }, 'chat')
/** Request with a single message, in which a text, given as it is written in JSON, is repeated. */
const repeated = (json: string): string =>
  `{"model":"m","messages":[{"role":"user","content":"${json.repeat(BYTES / json.length)}"}]}`

const CASES: readonly Case[] = [
  { name: 'prose', limit: REQUEST_LIMIT, text: bodyOf(call, 'chat') },
  { name: 'coding agent', limit: REQUEST_LIMIT, text: agent },
  { name: 'coding agent, ASCII only', limit: REQUEST_LIMIT, text: asciiOf(agent) },
  {
    name: 'coding agent, as JSON in a string',
    limit: ESCAPES_LIMIT,
    text: JSON.stringify({ model: 'm', messages: [{ role: 'tool', content: agent }] }),
  },
  { name: 'escapes alone', limit: ESCAPES_LIMIT, text: repeated('\\n\\t\\"\\\\') },
  { name: 'an escape after every character', limit: ESCAPES_LIMIT, text: repeated('a\\"b\\\\c\\n') },
  { name: 'escapes by number', limit: ESCAPES_LIMIT, text: repeated('\\u00e9\\u4e2d') },
]

interface Result {
  readonly name: string
  readonly limit: number
  readonly overParse: Spread
  readonly overDecodeAndParse: Spread
}

/** Microseconds of CPU time. */
function cost(run: () => unknown): number {
  const before = process.cpuUsage()
  for (let i = 0; i < REPEATS; i++) run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / REPEATS
}

function measure({ name, limit, text }: Case): Result {
  const bytes = Buffer.from(text)
  const rounds = Array.from({ length: WARM_UP + ROUNDS }, () => {
    const scanned = cost(() => scanObject(bytes))
    return [
      scanned / cost(() => JSON.parse(text)),
      scanned / cost(() => JSON.parse(bytes.toString())),
    ] as const
  }).slice(WARM_UP)
  const ratio = (at: 0 | 1): Spread =>
    spread(rounds.map((round) => round[at])) ?? { median: 0, p25: 0, p75: 0 }
  return { name, limit, overParse: ratio(0), overDecodeAndParse: ratio(1) }
}

const results = CASES.map(measure)
if (options.json) console.log(JSON.stringify({ unit: 'ratio to JSON.parse', results }, null, 2))
else
  for (const { name, limit, overParse, overDecodeAndParse } of results)
    console.log(
      `${overParse.median.toFixed(2)} × JSON.parse (quartiles ${overParse.p25.toFixed(2)} and ` +
        `${overParse.p75.toFixed(2)}, limit ${limit}), ${overDecodeAndParse.median.toFixed(2)} with decoding: ${name}`,
    )
process.exitCode = options.check && results.some(({ overParse, limit }) => overParse.median > limit) ? 1 : 0
