import { expect, onTestFinished, test } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { plainConfiguration } from '../fixtures/configuration.ts'
import { ask, askStream, startFixture } from '../fixtures/fixture.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'
import { codeBlocks } from '../recipes/recipe.ts'
import { filesWithErrors } from '../recipes/compiled-copy.ts'

const [FEATURE = '', ENTRY = ''] = codeBlocks('recipes/add-a-feature', 'ts')
const LIST = 'src/gateway/features.ts'
const FIRST_IMPORT = 'import { contentLog } from'
const FIRST_ENTRY = '  return [\n'
const PATCHES = [
  { file: 'src/features/vowels/feature.ts', text: '', by: FEATURE },
  {
    file: LIST,
    text: FIRST_IMPORT,
    by: `import { vowels } from '../features/vowels/feature.ts'\n${FIRST_IMPORT}`,
  },
  { file: LIST, text: FIRST_ENTRY, by: FIRST_ENTRY + ENTRY },
]

test('a feature that is added by the recipe takes part in the calls that it concerns, whole and streamed', async () => {
  const copy = await patchedProgram(PATCHES)
  onTestFinished(() => copy.discard())
  const fixture = await startFixture((upstream) => plainConfiguration(upstream.baseUrl('m')), {
    root: copy.root,
  })
  onTestFinished(() => fixture.close())
  fixture.upstream.decide('m', ({ text }) =>
    text.includes('"stream":true')
      ? { kind: 'stream', usage: usageText(10, 5) }
      : { kind: 'whole', content: 'yes', usage: usageText(10, 5) },
  )

  for (const body of [ask('m'), askStream('m')]) {
    const { status, headers } = await fixture.chat('ann', body)
    const count = JSON.stringify(body).split(/[aeiou]/).length - 1
    expect({ status, vowels: headers['x-vowels'] }).toEqual({ status: 200, vowels: String(count) })
  }
  // The answer of a call with an idempotency key is recorded, and sent again for the next one.
  for (const replayed of [undefined, 'true']) {
    const { headers } = await fixture.chat('ann', ask('m'), { headers: { 'idempotency-key': 'one' } })
    expect(headers).toMatchObject({ 'x-vowels': expect.stringMatching(/^\d+$/) })
    expect(headers['idempotency-replayed']).toBe(replayed)
  }
  const message = { ...ask('m'), max_tokens: 9 }
  const other = await call(fixture.gateway.url, message, { key: 'ann', path: '/v1/messages' })
  expect(other.status).toBe(200)
  expect(other.headers['x-vowels']).toBeUndefined()
})

test('the feature of the recipe compiles, and one with a wrong state does not', async () => {
  const file = 'src/features/wrong/feature.ts'
  const wrong = { file, text: '', by: FEATURE.replace('String(count)', 'count') }
  expect(await filesWithErrors([...PATCHES, wrong], '', [LIST, file])).toEqual([file])
})
