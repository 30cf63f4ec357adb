import { execFileSync } from 'node:child_process'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

/** What can be measured: the program of each name, relative to this folder, and what it measures. */
const PROGRAMS: Readonly<Record<string, readonly [file: string, measures: string]>> = {
  race: ['race/race.ts', 'this gateway beside others: calls, streams, starts and memory'],
  'answer-cache': [
    'calls/answer-cache.ts',
    'calls with the answer cache off, beside those of a copy without it',
  ],
  content: [
    'calls/content.ts',
    'calls whose content is kept, by level, beside calls of which nothing is kept',
  ],
  features: [
    'calls/features.ts',
    'what each feature costs a call that uses it, or that has it on by default',
  ],
  guards: ['calls/guards.ts', 'calls that no guard applies to, beside those of a gateway without guards'],
  limits: [
    'calls/limits.ts',
    'calls whose key and provider have limits, beside those of a copy that has none',
  ],
  'live-readers': ['calls/live-readers.ts', 'calls that readers follow live'],
  native: ['calls/native.ts', 'native calls of other dialects, beside those of chat'],
  sessions: ['calls/sessions.ts', 'what a call of a session costs more than another'],
  telemetry: ['calls/telemetry.ts', 'calls with telemetry, and with metrics alone, beside calls without'],
  'web-sockets': [
    'calls/web-sockets.ts',
    'turns of WebSockets, beside calls by POST; the memory of sockets and running turns',
  ],
  cache: ['money/cache.ts', 'what sessions of agents cost through the gateway, and with one account'],
  holds: ['money/holds.ts', 'how much agents hold in relation to what they are charged'],
  'hold-kinds': ['money/hold-kinds.ts', 'what a chat, an agent, embeddings and an image hold'],
  nodes: ['nodes/nodes.ts', 'calls on three nodes, beside those on one'],
  code: ['parts/passed-code.ts', 'files and functions that a call passes'],
  codec: ['parts/codec.ts', 'an event of each conversion'],
  digests: ['parts/prompt-digests.ts', 'finding the earlier turn that a long conversation continues'],
  fidelity: ['parts/fidelity.ts', 'the facts of recorded answers that reach the client, beside Portkey'],
  json: ['parts/json-scan.ts', 'scanning requests, beside JSON.parse'],
  redaction: ['parts/redaction.ts', 'what rules of guards cost for 1,000 characters'],
  signatures: ['parts/signatures.ts', 'keeping and restoring signed thoughts'],
  'upstream-client': ['parts/upstream-client.ts', "the upstream client, beside undici's"],
  'usage-sums': ['parts/usage-sums.ts', 'writing sums of a million calls, and answers from them'],
}

const BUILD = fileURLToPath(new URL('../tools/build.mjs', import.meta.url))

const [, , name = 'race'] = process.argv
if (name === '--help') {
  const lines = Object.entries(PROGRAMS).map(([one, [, measures]]) => `  ${one.padEnd(16)}${measures}`)
  console.log(`npm run bench -- [NAME] [OPTION]…\n\nMeasures race, or what is named:\n${lines.join('\n')}`)
  console.log('\nnpm run bench -- race --help lists its scenarios.')
} else {
  const isNamed = !name.startsWith('-')
  const [file] = PROGRAMS[isNamed ? name : 'race'] ?? []
  if (file === undefined) {
    console.error(`there is no bench ${name}; npm run bench -- --help lists them`)
    process.exitCode = 1
  } else {
    // The program reads its own options.
    if (isNamed) process.argv.splice(2, 1)
    // After an edit a clone runs its sources, with which starts and calls are slower.
    if (!process.argv.includes('--help'))
      execFileSync(process.execPath, [BUILD, '--for-clone'], { stdio: 'inherit' })
    await import(`./${file}`)
  }
}
