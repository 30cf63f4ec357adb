// `npm run bench -- fidelity`: sends recorded answers of providers through Sluice and Portkey, and counts which of their
// facts reach the client. RECORDINGS names the folder: DIALECT/NAME.json for whole answers, NAME.sse for streams.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { isDeepStrictEqual } from 'node:util'
import { DIALECTS, type Dialect, type Facts, UNREAD } from '../../test/fidelity/facts.ts'
import { streamFacts, wholeFacts } from '../../test/fidelity/read-facts.ts'
import { recordedAnswers, type Recording } from '../../test/fidelity/recordings.ts'
import { askedOf, QUESTIONS, startRoads } from '../../test/fidelity/roads.ts'
import { PORTKEY_PROVIDERS, startPortkey } from '../candidates/portkey.ts'

/** The roads that Portkey has: it converts for chat clients, and passes messages and responses on. */
const PORTKEY_ROADS = new Set([
  'chat chat',
  'chat messages',
  'chat gemini',
  'messages messages',
  'responses responses',
])

/** Facts that were kept, of those that the recordings state; and answers of which all were kept. */
interface Score {
  facts: number
  kept: number
  answers: number
  whole: number
}

type Ask = (client: Dialect, recording: Recording) => Promise<string | undefined>

const recordings = recordedAnswers()
if (recordings.length === 0) {
  console.error('RECORDINGS must name a folder of recorded answers: DIALECT/NAME.json, DIALECT/NAME.sse')
  process.exit(1)
}
const folder = mkdtempSync(join(tmpdir(), 'sluice-fidelity-'))
const fixture = await startRoads()
const portkey = await startPortkey(folder)
if (typeof portkey === 'string') console.error(`Portkey is left out: ${portkey}`)
try {
  const programs: [string, Ask][] = [['Sluice', askSluice]]
  if (typeof portkey !== 'string') programs.push(['Portkey', askPortkey(portkey.port)])
  const lines = []
  for (const [program, ask] of programs) lines.push(...(await rowsOf(program, ask)))
  console.log(`${recordings.length} recorded answers\n`)
  console.log(
    '| client | channel | program | answers | with every fact | facts | kept |\n|---|---|---|---|---|---|---|',
  )
  console.log(lines.join('\n'))
} finally {
  if (typeof portkey !== 'string') await portkey[Symbol.asyncDispose]()
  await fixture.close()
  rmSync(folder, { recursive: true, force: true })
}

async function rowsOf(program: string, ask: Ask): Promise<string[]> {
  const total = { facts: 0, kept: 0, answers: 0, whole: 0 }
  const lines = []
  for (const client of DIALECTS)
    for (const dialect of DIALECTS) {
      if (program === 'Portkey' && !PORTKEY_ROADS.has(`${client} ${dialect}`)) continue
      const score = { facts: 0, kept: 0, answers: 0, whole: 0 }
      for (const recording of recordings)
        if (recording.dialect === dialect) await count(score, { program, client, recording, ask })
      for (const name of ['facts', 'kept', 'answers', 'whole'] as const) total[name] += score[name]
      lines.push(rowOf(client, dialect, program, score))
    }
  return [...lines, rowOf('all', 'its roads', program, total)]
}

function rowOf(
  client: string,
  dialect: string,
  program: string,
  { answers, whole, facts, kept }: Score,
): string {
  const share = (part: number, of: number): string => `${((part / of) * 100).toFixed(1)} %`
  return `| ${client} | ${dialect} | ${program} | ${answers} | ${share(whole, answers)} | ${facts} | ${share(kept, facts)} |`
}

async function count(
  score: Score,
  { program, client, recording, ask }: { program: string; client: Dialect; recording: Recording; ask: Ask },
): Promise<void> {
  const said = factsOf(recording.dialect, recording.streamed, recording.text)
  if (!said) return
  const answer = await ask(client, recording)
  const got = answer === undefined ? undefined : factsOf(client, recording.streamed, answer)
  const stated = factsToKeep(said, client)
  const lost = stated.filter(([, read]) => !got || !isDeepStrictEqual(read(got), read(said)))
  if (process.env['VERBOSE'] && lost.length > 0)
    console.error(program, client, recording.dialect, recording.name, lost.map(([name]) => name).join(' '))
  score.answers += 1
  score.facts += stated.length
  score.kept += stated.length - lost.length
  if (lost.length === 0) score.whole += 1
}

/** Undefined where the text is not an answer of the dialect. */
function factsOf(dialect: Dialect, streamed: boolean, text: string): Facts | undefined {
  try {
    return (streamed ? streamFacts : wholeFacts)(dialect, text)
  } catch {
    return undefined
  }
}

/**
 * The facts that an answer states. Ids, and the line breaks between thoughts, are the dialects' own; the chat dialect
 * has no field for thoughts on which programs agree.
 */
function factsToKeep(said: Facts, client: Dialect): [name: string, read: (facts: Facts) => unknown][] {
  const facts: [string, (facts: Facts) => unknown][] = [['no error', ({ errors }) => errors]]
  if (said.text !== '') facts.push(['text', ({ text }) => text])
  if (said.reasoning !== '' && client !== 'chat')
    facts.push(['reasoning', ({ reasoning }) => reasoning.replaceAll('\n', '')])
  for (const [i, { input }] of said.calls.entries()) {
    facts.push(['call', ({ calls }) => calls[i]?.name])
    if (input !== UNREAD) facts.push(['arguments', ({ calls }) => calls[i]?.input])
  }
  // Dialects differ in how a refused answer ends.
  if (said.finish !== undefined && said.refusal === '') facts.push(['finish', ({ finish }) => finish])
  if (said.usage && said.usage.output > 0)
    for (const name of ['prompt', 'cached', 'output'] as const)
      facts.push([name, ({ usage }) => usage?.[name]])
  return facts
}

async function askSluice(
  client: Dialect,
  { dialect, streamed, text }: Recording,
): Promise<string | undefined> {
  const answer = await askedOf(fixture, { client, dialect, streamed }, text)
  return answer.status === 200 ? answer.text : undefined
}

function askPortkey(port: number): Ask {
  return async (client, { dialect, streamed, text }) => {
    const { path, body } = QUESTIONS[client](dialect, streamed)
    fixture.upstream.script(
      dialect,
      streamed ? { kind: 'stream', frames: [text], ending: 'no done' } : { kind: 'whole', body: text },
    )
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers: {
        authorization: 'Bearer upstream-key',
        'content-type': 'application/json',
        'x-portkey-provider': PORTKEY_PROVIDERS[dialect],
        'x-portkey-custom-host': fixture.upstream.baseUrl(dialect),
      },
      body: JSON.stringify(body),
    })
    const answered = await answer.text()
    return answer.status === 200 ? answered : undefined
  }
}
