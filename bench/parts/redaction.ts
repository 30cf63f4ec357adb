import { readFileSync } from 'node:fs'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { compileRule, PII_KINDS, type RuleMatch } from '@sluice/screen/rule'
import { TextScreen } from '@sluice/screen/screen'

/**
 * Measures what rules cost for 1,000 characters of prose and code, in milliseconds of CPU time: whole, in pieces of four
 * characters, and as the arguments of a tool in such pieces; and what texts cost that are hard to match. `--check` fails
 * if one of these takes more than `MAX_RATIO` times what the built-in rules take on prose and code.
 */
const MAX_RATIO = 20
const ROUNDS = 12
const PIECE = 4
const { values: options } = parseArgs({ options: { check: { type: 'boolean', default: false } } })

const root = new URL('../../', import.meta.url)
const read = (name: string) => readFileSync(new URL(name, root), 'utf8')
const text = read('docs/api.md').slice(0, 50_000) + read('src/call/relay.ts') + denseText()

const REGEX: RuleMatch = { regex: String.raw`(?i)project[- ]?(?:titan|orion)-\d{2,6}` }
const WORDS: RuleMatch = { words: ['confidential', 'internal only', '密码', 'merlin', 'password reset'] }
const SECRETS: RuleMatch = { secrets: true }
const PII: RuleMatch = { pii: PII_KINDS }

const CASES: readonly {
  readonly name: string
  readonly rules: readonly RuleMatch[]
  readonly text?: string
  readonly isHard?: true
}[] = [
  { name: 'built-in rules', rules: [{ secrets: true }, { pii: PII_KINDS }] },
  { name: 'regex', rules: [REGEX] },
  { name: 'words', rules: [WORDS] },
  { name: 'secrets', rules: [SECRETS] },
  { name: 'pii', rules: [PII] },
  { name: 'all of them', rules: [REGEX, WORDS, SECRETS, PII] },
  {
    name: 'all of them, dense with matches',
    rules: [REGEX, WORDS, SECRETS, PII],
    text: denseText().repeat(8),
  },
  {
    name: 'all of them, Chinese',
    rules: [REGEX, WORDS, SECRETS, PII],
    text: '请把这份文件发给客户，并在周五之前回复我。'.repeat(2000),
  },
  { name: '(a+)+b on a…a', rules: [{ regex: '(a+)+b' }], text: 'a'.repeat(50_000), isHard: true },
  { name: '[a-z]{1,64}@ on a…a', rules: [{ regex: '[a-z]{1,64}@' }], text: 'a'.repeat(50_000), isHard: true },
  {
    name: String.raw`[\w.-]+\.[\w.-]{2,60}\.internal`,
    rules: [{ regex: String.raw`[\w.-]+\.[\w.-]{2,60}\.internal` }],
    text: randomText('ab.'),
    isHard: true,
  },
  { name: '[ab]{0,190}c', rules: [{ regex: '[ab]{0,190}c' }], text: randomText('ab'), isHard: true },
  {
    name: '(?:[ab]{1,180}c|[ab])+',
    rules: [{ regex: '(?:[ab]{1,180}c|[ab])+' }],
    text: randomText('ab'),
    isHard: true,
  },
]

function randomText(letters: string): string {
  let seed = 1
  const draw = (): number => (seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0)
  return Array.from({ length: 20_000 }, () => letters[Math.floor((draw() / 2 ** 32) * letters.length)]).join(
    '',
  )
}

/** Lines with matches of all kinds. */
function denseText(): string {
  return Array.from(
    { length: 40 },
    (_, n) =>
      `Client ${n} (ann.${n}@example.com, +49 30 23125 0${n}, DE89 3704 0044 0532 0130 00) paid with 4242 4242 4242 4242 from 192.0.2.${n}; the key of the build was ghp_${String(n).padStart(36, 'a1B2')}.\n`,
  ).join('')
}

/** Milliseconds of CPU time for 1,000 characters; the quickest round, because other work only slows one down. */
function cost(text: string, work: () => unknown): number {
  let quickest = Infinity
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage()
    work()
    const { user, system } = process.cpuUsage(before)
    quickest = Math.min(quickest, user + system)
  }
  return quickest / text.length
}

function inPieces(text: string, stream: { push: (piece: string) => string; end: () => string }): number {
  let length = 0
  for (let at = 0; at < text.length; at += PIECE) length += stream.push(text.slice(at, at + PIECE)).length
  return length + stream.end().length
}

let failed = 0
let plain: readonly number[] = []
console.log('ms for 1,000 characters'.padEnd(34), 'whole', 'pieces', 'arguments')
for (const { name, rules, text: own = text, isHard } of CASES) {
  const screen = new TextScreen(
    rules.map((match, n) => ({ rule: compileRule(`rule ${n}`, match), do: 'redact' as const })),
  )
  const json = JSON.stringify({ text: own })
  const costs = [
    cost(own, () => screen.apply(own)),
    cost(own, () => inPieces(own, screen.stream())),
    cost(own, () => inPieces(json, screen.stream(undefined, true))),
  ]
  if (plain.length === 0) plain = costs
  if (isHard && costs.some((ms, way) => ms > MAX_RATIO * (plain[way] ?? 0))) failed = 1
  console.log(name.padEnd(34), ...costs.map((ms) => ms.toFixed(3).padStart(5)))
}
process.exitCode = options.check ? failed : 0
