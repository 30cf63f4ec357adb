import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { PROTOCOL_NAMES } from '../../src/domain/protocols.ts'
import { filesWithErrors } from './compiled-copy.ts'

const REPOSITORY = join(import.meta.dirname, '../..')

const ACME = {
  file: 'src/domain/protocols.ts',
  text: '  rerank: {\n    isConversation: false,',
  by: `  acme: {
    isConversation: true,
    hasClients: true,
    endpointType: 'compat',
    embeds: false,
    vendor: 'openai',
    hasTools: false,
    isSigned: false,
    providers: [],
    channelType: undefined,
  },
  rerank: {
    isConversation: false,`,
}

test('a protocol that is added to the table causes compile errors where a decision is needed', async () => {
  expect(await filesWithErrors([ACME], 'acme')).toEqual([
    'console/locales/en/channels.ts',
    'console/pages/channels/channel-inputs.tsx',
    'src/config/warnings.ts',
    'src/domain/endpoint-types.ts',
    'src/domain/endpoints.ts',
    'src/management/channels/models-request.ts',
    'src/management/channels/test-request.ts',
    'src/protocols/chat/reasoning-details.ts',
    'src/protocols/crossed-error.ts',
    'src/relay/dialects/choose-dialect.ts',
    'src/relay/dialects/client-dialects.ts',
    'src/relay/dialects/conversions.ts',
    'src/relay/dialects/counting.ts',
    'src/upstreams/upstream-client.ts',
  ])
})

test('only the table lists the protocols, so that no other place decides silently', () => {
  const name = `'(?:${PROTOCOL_NAMES.join('|')})'`
  const list = new RegExp(String.raw`${name}(?:\s*[,|]\s*${name}){2}`)
  const listing = ['src', 'console'].flatMap((folder) =>
    readdirSync(join(REPOSITORY, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.tsx?$/.test(file) && !file.endsWith('.test.ts'))
      .map((file) => join(folder, file))
      .filter((file) => list.test(readFileSync(join(REPOSITORY, file), 'utf8'))),
  )
  // The types of channels state the order in which one of Vertex tries its protocols.
  expect(listing).toEqual(['src/management/channels/channel-types.ts'])
})
