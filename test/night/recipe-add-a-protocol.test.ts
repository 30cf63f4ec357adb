import { existsSync, readdirSync, readFileSync } from 'node:fs'
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

test('no source file but the table lists the protocols, so that no other place decides silently', () => {
  const name = `'(?:${PROTOCOL_NAMES.join('|')})'`
  const list = new RegExp(String.raw`${name}(?:\s*[,|]\s*${name}){2}`)
  const listing = ['src', 'packages', 'console'].flatMap((folder) =>
    readdirSync(join(REPOSITORY, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.tsx?$/.test(file) && !file.endsWith('.test.ts'))
      .map((file) => join(folder, file))
      .filter((file) => list.test(readFileSync(join(REPOSITORY, file), 'utf8'))),
  )
  // The types of channels state the order in which one of Vertex tries its protocols.
  expect(listing).toEqual(['src/management/channels/channel-types.ts'])
})

test('no source module compares a protocol with a fixed name, except the importer, whose formats are fixed', () => {
  const name = `'(?:${PROTOCOL_NAMES.join('|')})'`
  const comparison = new RegExp(
    String.raw`\bprotocol\b[^\n]{0,20}[!=]== ${name}|\b(?:client|spoken|dialect)(?:\.name)? [!=]== ${name}`,
  )
  const comparing = readdirSync(join(REPOSITORY, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
    .filter((file) => comparison.test(readFileSync(join(REPOSITORY, 'src', file), 'utf8')))
  expect(comparing).toEqual(['transfer/plan-channels.ts'])
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
