/** What the world of `world.ts` has besides calls of the past: calls of today, batches, and MCP servers with their tools. */
import { textTool } from '@sluice/simulator'
import { BatchClient, chatLine } from '../../test/fixtures/batches.ts'
import { startMcpServer } from '../../test/fixtures/mcp.ts'
import { type ConsoleStage, PEOPLE } from './console-stage.ts'

/** Adds all of it to a running world. Disposing of the result ends the servers. */
export async function addServices(stage: ConsoleStage): Promise<AsyncDisposable> {
  // So many calls that the failing channel is known to fail.
  for (let call = 0; call < 8; call += 1) await stage.call('mistral-large-latest')
  for (let call = 0; call < 4; call += 1) await stage.call('gpt-5-mini')
  await makeBatches(stage.gateway.url)
  return makeTools(stage)
}

/** Makes a batch whose lines are answered, and one of which some fail. */
async function makeBatches(gatewayUrl: string): Promise<void> {
  const client = new BatchClient(gatewayUrl, PEOPLE.root.key)
  const lineOf = (content: string) => (_: unknown, at: number) =>
    chatLine(`${content.slice(0, 8)}-${at}`, 'gpt-5-mini', { messages: [{ role: 'user', content }] })
  const answered = Array.from({ length: 20 }, lineOf('summary of a report'))
  const failed = Array.from({ length: 3 }, lineOf('refused simulate(status=400)'))
  for (const lines of [answered, [...answered, ...failed]]) await client.ended((await client.make(lines)).id)
}

/** Makes a server that answers, one whose tools wait for an approval, one that is away, and a toolset. */
async function makeTools(stage: ConsoleStage): Promise<AsyncDisposable> {
  const opened = new AsyncDisposableStack()
  const start = async (name: string, tools: Readonly<Record<string, string>>): Promise<string> => {
    const server = await startMcpServer({
      name,
      versions: ['2026-07-28'],
      tools: () =>
        Object.entries(tools).map(([tool, description]) =>
          textTool({ name: tool, description }, () => 'content'),
        ),
      cacheScope: 'private',
    })
    opened.defer(() => server.close())
    return server.url
  }
  const notes = await start('notes', { read: 'Reads a note.', write: 'Writes a note, or replaces one.' })
  const calendar = await start('calendar', {
    'list-events-of-all-calendars': 'Lists the events of a period in all calendars of a person.',
  })
  const add = (name: string, url: string, fields: object) =>
    stage.api('POST', '/api/mcp/servers', { name, url, ...fields })
  await add('notes', notes, { price: { call: '0.002', tools: { write: '0.01' } } })
  await add('calendar-of-the-head-office', calendar, { approve: 'always' })
  await add('tickets', 'http://127.0.0.1:9/mcp', {})
  await stage.api('POST', '/api/mcp/toolsets', {
    name: 'reading',
    tools: ['notes.read'],
    groups: ['research'],
  })
  return opened
}
