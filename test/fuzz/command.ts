import { randomInt } from 'node:crypto'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { runFuzzer } from './run-fuzzer.ts'
import { TARGETS } from './targets.ts'

const USAGE = `npm run fuzz -- [--seconds 60] [--seed N] [--keep] [TARGET…]

Fuzzes the named targets, or all, one after the other; --keep adds inputs that reached something new to the corpus.
Targets:
  ${Object.keys(TARGETS).join('\n  ')}
`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    keep: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  console.log(USAGE)
  process.exit()
}
const seed = Number(values.seed)
console.log(`seed ${seed}`)
for (const target of positionals.length > 0 ? positionals : Object.keys(TARGETS)) {
  const report = await runFuzzer({ target, seed, ms: Number(values.seconds) * 1_000, keep: values.keep })
  const { inputs, kept, characters, peakMib, failure } = report
  console.log(`${target}: ${inputs} inputs, ${kept} kept, ${characters} characters reached, ${peakMib} MiB`)
  if (!failure) continue
  console.log(`${failure.error}\nThe input, in base64: ${failure.input}`)
  process.exitCode = 1
}
