import { expect, test } from 'vitest'
import { channelOf } from '../../../test/samples/channel.ts'
import type { WireRequest } from '../provider.ts'
import { bedrock } from './bedrock.ts'

const channel = channelOf({
  provider: 'bedrock',
  region: 'eu-central-1',
  base_url: 'https://bedrock-runtime.eu-central-1.amazonaws.com',
})
const REQUEST = {
  protocol: 'messages',
  path: '/messages',
  headers: ['anthropic-version', '2023-06-01', 'x-api-key', 'of a client'],
  body: Buffer.from('{}'),
  upstreamModel: 'arn:aws:bedrock:eu-central-1:1:inference-profile/eu.anthropic.claude-v1:0',
} as const

function requestedAt(now: string): WireRequest {
  const key = { value: 'AKIDEXAMPLE:wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' }
  return bedrock.request(REQUEST, { channel, key, now: new Date(now) }) as WireRequest
}

test('each attempt of a Bedrock call is signed with the time of that attempt', () => {
  const [first, second] = ['2026-01-01T00:00:00Z', '2026-01-01T00:09:00Z'].map(
    (now) => requestedAt(now).headers,
  )
  expect(first?.slice(2, 4)).toEqual(['x-amz-date', '20260101T000000Z'])
  expect(second?.slice(2, 4)).toEqual(['x-amz-date', '20260101T000900Z'])
  expect(first?.at(-1)).not.toBe(second?.at(-1))
})

test('the model ARN of a Bedrock call is encoded as one path segment, and no header of the client is sent', () => {
  const { path, headers } = requestedAt('2026-01-01T00:00:00Z')
  expect(path).toBe(
    '/model/arn%3Aaws%3Abedrock%3Aeu-central-1%3A1%3Ainference-profile%2Feu.anthropic.claude-v1%3A0/invoke',
  )
  expect(headers.filter((_, index) => index % 2 === 0)).toEqual(['accept', 'x-amz-date', 'authorization'])
})
