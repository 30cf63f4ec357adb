/**
 * Makes the pictures on the README: `node e2e/console/picture.ts`, after `npm run console`. docs/console.png is the
 * console, where the usage of three months is made up; docs/first-call.png is a call and its line in the log.
 */
import { join } from 'node:path'
import { commandOn } from '../../test/fixtures/command.ts'
import { type ConsoleStage, PEOPLE, startConsoleStage } from './console-stage.ts'
import { addManyCalls } from './many-calls.ts'

const DOCS = join(import.meta.dirname, '../../docs')

const stage = await startConsoleStage()
try {
  await stage.gateway.stop()
  await addManyCalls(stage.gateway.dataDir, { keys: 40, calls: 20_000 })
  await stage.gateway.restart()
  const page = await stage.open('admin', '/usage')
  await page.waitForLoadState('networkidle')
  // The charts are drawn when their data are there.
  await page.waitForTimeout(1_500)
  await page.screenshot({ path: join(DOCS, 'console.png') })
  await takeFirstCall(stage)
} finally {
  await stage.close()
}

/** Makes a call and shows, as a terminal would, the request, the answer and what `sluice logs` prints. */
async function takeFirstCall(from: ConsoleStage): Promise<void> {
  const { gateway } = from
  const body = { model: 'demo-claude', messages: [{ role: 'user', content: 'Hello!' }] }
  const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${PEOPLE.root.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const { choices, usage } = (await answer.json()) as {
    choices: [{ message: { role: string; content: string } }]
    usage: { prompt_tokens: number; completion_tokens: number }
  }
  const [{ message }] = choices
  const { prompt_tokens, completion_tokens } = usage
  const shown = [
    { role: message.role, content: message.content },
    { prompt_tokens, completion_tokens },
  ]
  let logged = ''
  while (!logged.includes('Complete')) logged = (await commandOn(gateway, 'logs', '--limit', '1')).out
  const lines = [
    '<b>$ curl http://127.0.0.1:3000/v1/chat/completions -H "Authorization: Bearer $SLUICE_KEY" \\',
    `    -H 'Content-Type: application/json' -d '${JSON.stringify(body)}' \\`,
    "    | jq '(.choices[0].message | {role, content}), (.usage | {prompt_tokens, completion_tokens})'</b>",
    ...shown.map((part) => JSON.stringify(part, undefined, 2)),
    '',
    '<b>$ sluice logs --limit 1</b>',
    logged.replaceAll('<', '&lt;'),
  ]
  const page = await from.open(undefined, 'about:blank', { viewport: { width: 1340, height: 300 } })
  await page.setContent(
    `<body style="margin:0"><pre style="margin:0;padding:20px 24px;background:#16181d;color:#c9d1d9;font:14px/1.5 monospace">${lines.join('\n').trimEnd()}</pre>`,
  )
  await page.locator('pre').screenshot({ path: join(DOCS, 'first-call.png') })
}
