import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { PROTOCOL_NAMES, PROTOCOLS } from '@sluice/wire/protocols'
import { filesWithErrors } from '../recipes/compiled-copy.ts'

const REPOSITORY = join(import.meta.dirname, '../..')

const ACME = {
  file: 'packages/wire/src/protocols.ts',
  text: '  rerank: {',
  by: `  acme: { isConversation: true, hasClients: true, isSigned: false, hasChoices: false, reportsThoughts: false },
  rerank: {`,
}

test('a protocol that is added to the table of protocols causes compile errors wherever code has to decide about it', async () => {
  expect(await filesWithErrors([ACME], 'acme')).toEqual([
    'console/locales/en/channels.ts',
    'console/pages/channels/advanced-inputs.tsx',
    'console/pages/channels/channel-inputs.tsx',
    'console/pages/playground/call-inputs.tsx',
    'console/pages/playground/call-model.ts',
    'console/pages/playground/comparison.tsx',
    'console/pages/playground/exchange-view.tsx',
    'console/pages/playground/request-body.ts',
    'console/pages/routing/routing-page.tsx',
    'packages/wire/src/chat/reasoning-details.ts',
    'packages/wire/src/event-texts.ts',
    'packages/wire/src/found-texts.ts',
    'packages/wire/src/hidden-thinking.ts',
    'packages/wire/src/refused-answer.ts',
    'packages/wire/src/signature-envelope.ts',
    'packages/wire/src/system-prompt.ts',
    'packages/wire/src/upstream-error.ts',
    'packages/wire/src/wire-names.ts',
    'src/call/cache-lifetimes.ts',
    'src/call/dialects/choose-dialect.ts',
    'src/call/dialects/client-dialects.ts',
    'src/call/dialects/conversion-dialects.ts',
    'src/call/dialects/conversions.ts',
    'src/call/dialects/count-tokens.ts',
    'src/call/estimate.ts',
    'src/call/failure.ts',
    'src/call/routing.ts',
    'src/config/warnings.ts',
    'src/domain/endpoints.ts',
    'src/domain/gen-ai-provider.ts',
    'src/domain/protocols.ts',
    'src/features/affinity/cache-key.ts',
    'src/features/guards/event-frames.ts',
    'src/features/guards/guarded-attempt.ts',
    'src/http/answer-headers.ts',
    'src/management/channels/test-request.ts',
    'src/upstreams/azure/azure.ts',
    'src/upstreams/bedrock/bedrock-responses.ts',
    'src/upstreams/bedrock/bedrock.ts',
    'src/upstreams/channel-tier.ts',
    'src/upstreams/upstream-client.ts',
    'src/upstreams/vertex/vertex.ts',
  ])
})

test('the folder of each protocol of clients with conversations has the files and folders that the recipe names', () => {
  const recipe = readFileSync(join(REPOSITORY, 'docs/recipes/add-a-protocol.md'), 'utf8')
  const named = [...recipe.matchAll(/\(`([a-z/-]+(?:\.ts|\/))`/g)].map(([, path = '']) => path)
  const inFolder = named.filter((path) => !/^(?:packages|src|test)\//.test(path))
  expect(inFolder).toEqual(expect.arrayContaining(['shape.ts', 'native/tap.ts', 'decode/']))
  const protocols = PROTOCOL_NAMES.filter(
    (name) => PROTOCOLS[name].isConversation && PROTOCOLS[name].hasClients,
  )
  const missing = protocols
    .flatMap((name) => inFolder.map((path) => join('packages/wire/src', name, path)))
    .filter((path) => !existsSync(join(REPOSITORY, path)))
  expect(missing).toEqual([])
})
