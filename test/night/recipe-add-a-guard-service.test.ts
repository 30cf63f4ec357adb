import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { plainConfiguration } from '../fixtures/configuration.ts'
import { ask, startFixture } from '../fixtures/fixture.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'
import { codeBlocks } from '../recipes/recipe.ts'

const [MEMBER = '', SCHEMA = '', SAYS_WHERE = '', SERVICE = ''] = codeBlocks(
  'recipes/add-a-guard-service',
  'ts',
)
const SERVICES = 'src/features/guards/services'
const LAKERA = "  | {\n      readonly kind: 'lakera'\n"
const FIRST_SCHEMA = '  moderation: sectionSchema({\n    moderation:'
const FIRST_SAYS_WHERE = '  moderation: false,\n'
const IMPORT = "import { lakera } from './lakera.ts'\n"
const LAST_SERVICE = '  lakera,\n'

/** Starts a service that flags texts with the word `forbidden`. */
async function startService(): Promise<string> {
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const { texts } = JSON.parse(body) as { texts: readonly string[] }
      response.end(JSON.stringify({ flags: texts.map((one) => one.includes('forbidden')) }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('a guard service that is added by the recipe decides about prompts and answers', async () => {
  const copy = await patchedProgram([
    { file: 'src/domain/guard.ts', text: LAKERA, by: MEMBER + LAKERA },
    { file: 'src/config/guard-services.ts', text: FIRST_SCHEMA, by: SCHEMA + FIRST_SCHEMA },
    { file: 'src/config/guards.ts', text: FIRST_SAYS_WHERE, by: SAYS_WHERE + FIRST_SAYS_WHERE },
    { file: `${SERVICES}/acme.ts`, text: '', by: SERVICE },
    { file: `${SERVICES}/services.ts`, text: IMPORT, by: `import { acme } from './acme.ts'\n${IMPORT}` },
    { file: `${SERVICES}/services.ts`, text: LAST_SERVICE, by: `${LAST_SERVICE}  acme,\n` },
  ])
  onTestFinished(() => copy.discard())
  const url = await startService()
  const guard = { name: 'judge', do: 'block', where: ['input', 'output'], match: { acme: { url } } }
  const fixture = await startFixture(
    (upstream) => ({ ...plainConfiguration(upstream.baseUrl('m')), guards: [guard] }),
    { root: copy.root },
  )
  onTestFinished(() => fixture.close())
  const say = async (question: string, content: string): Promise<unknown> => {
    fixture.upstream.decide('m', () => ({ kind: 'whole', content, usage: usageText(10, 5) }))
    const answer = await fixture.chat('ann', ask('m', { messages: [{ role: 'user', content: question }] }))
    return answer.status === 200 ? answer.json().choices[0]?.message.content : answer.json().error.code
  }

  expect(await say('hello', 'good morning')).toBe('good morning')
  expect(await say('a forbidden question', 'hello')).toBe('guard_blocked')
  expect(await say('hello', 'a forbidden answer')).toBeNull()
})
