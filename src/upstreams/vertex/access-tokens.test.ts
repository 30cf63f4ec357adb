import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import type { Channel } from '../../domain/records/channel.ts'
import type { ServiceAccount } from '../../domain/provider-keys.ts'
import { ProviderRefusal } from '../provider.ts'
import { AccessTokens } from './access-tokens.ts'

const HOUR_S = 3_600
const START_MS = Date.UTC(2026, 10, 22)
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const ACCOUNT: ServiceAccount = {
  email: 'a@b.iam.gserviceaccount.com',
  project: 'p',
  privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  privateKeyId: 'k',
  tokenUri: 'https://oauth2.googleapis.com/token',
}
const channel: Pick<Channel, 'proxy' | 'isSetOverHttp'> = { proxy: null }
const KEY = { value: 'key' }

/** Tokens that are valid for an hour; the second and later ones are issued when the test releases them. */
function account() {
  const asked: PromiseWithResolvers<{ status: number; body: string }>[] = []
  const tokens = new AccessTokens(() => {
    const answer = Promise.withResolvers<{ status: number; body: string }>()
    asked.push(answer)
    return answer.promise
  })
  return {
    asked,
    answer: (at: number, status = 200): void => {
      const body = JSON.stringify({ access_token: `token-${at}`, expires_in: HOUR_S })
      asked[at]?.resolve({ status, body })
    },
    at: (seconds: number) =>
      tokens.of({ channel: channel as Channel, key: KEY, now: new Date(START_MS + seconds * 1000) }, ACCOUNT),
  }
}

test('a Vertex access token is renewed five minutes before it expires, by one request, while the old one is used', async () => {
  const { asked, answer, at } = account()
  const first = [at(0), at(0)]
  answer(0)
  expect(await Promise.all(first)).toEqual(['token-0', 'token-0'])
  expect(await at(HOUR_S - 301)).toBe('token-0')
  expect(asked).toHaveLength(1)
  expect(await Promise.all([at(HOUR_S - 299), at(HOUR_S - 200)])).toEqual(['token-0', 'token-0'])
  expect(asked).toHaveLength(2)
  answer(1)
  await expect.poll(() => at(HOUR_S - 199)).toBe('token-1')
  expect(asked).toHaveLength(2)
})

test('a Vertex access token whose renewal fails is used until 30 s before it expires, and the renewal is retried', async () => {
  const { asked, answer, at } = account()
  const first = at(0)
  answer(0)
  await first
  await expect.poll(async () => [await at(HOUR_S - 100), asked.length]).toEqual(['token-0', 2])
  answer(1, 503)
  await expect.poll(async () => [await at(HOUR_S - 60), asked.length]).toEqual(['token-0', 3])
  const late = at(HOUR_S - 29)
  answer(2, 503)
  await expect(late).rejects.toThrow(ProviderRefusal)
})
