import { expect, test } from 'vitest'
import { channelOf } from '../../../test/samples/channel.ts'
import type { ProtocolName } from '@sluice/wire/protocols'
import type { WireRequest } from '../provider.ts'
import { azure } from './azure.ts'

const BODY = Buffer.from('{"model":"my-deployment"}')

function requested(protocol: ProtocolName, path: string, api_version: string | null = null): WireRequest {
  const channel = channelOf({ provider: 'azure', api_version })
  const request = { protocol, path, headers: ['accept', 'a'], body: BODY, upstreamModel: 'my deployment' }
  return azure.request(request, { channel, key: { value: 'the-key' }, now: new Date() }) as WireRequest
}

test.each([
  [
    'chat',
    '/chat/completions',
    '/openai/deployments/my%20deployment/chat/completions?api-version=2024-10-21',
  ],
  ['responses', '/responses', '/openai/responses?api-version=2024-10-21'],
  [
    'responses',
    '/responses/resp_1?stream=true',
    '/openai/responses/resp_1?stream=true&api-version=2024-10-21',
  ],
] as const)('with a dated API version of Azure, %s %s is called at %s', (protocol, path, expected) => {
  const { path: asked, headers, body } = requested(protocol, path, '2024-10-21')
  expect(asked).toBe(expected)
  expect(headers).toEqual(['accept', 'a', 'api-key', 'the-key'])
  expect(body).toBe(BODY)
})

test.each([
  ['chat', '/chat/completions', '/openai/v1/chat/completions'],
  ['responses', '/responses', '/openai/v1/responses'],
] as const)('with the v1 API of Azure, %s %s is called at %s', (protocol, path, expected) => {
  expect(requested(protocol, path).path).toBe(expected)
})

test('a call of Claude in Microsoft Foundry has the path and the key header of Anthropic', () => {
  const { path, headers } = requested('messages', '/messages')
  expect(path).toBe('/anthropic/v1/messages')
  expect(headers).toEqual(['accept', 'a', 'x-api-key', 'the-key'])
})
