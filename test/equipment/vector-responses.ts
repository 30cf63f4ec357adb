import { channel, PLAIN_PRICE, ROOT, token, user } from './configuration.ts'
import { type Fixture, startFixture } from './fixture.ts'
import { MEASURED_TURNS } from './turn-cpu.ts'

/** Starts a gateway whose turns are measured, with the model `m`. */
export function startMeasuredFixture(): Promise<Fixture> {
  return startFixture(
    (upstream) => ({
      models: { m: { price: PLAIN_PRICE } },
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    }),
    { env: MEASURED_TURNS },
  )
}

/** A response with this number of embeddings, each with the same JSON; it costs nine tokens. */
export function vectorsResponse(vectors: number, embedding: string): Buffer {
  const data = Array.from({ length: vectors }, (_, index) => `{"index":${index},"embedding":${embedding}}`)
  return Buffer.from(
    `{"object":"list","data":[${data.join(',')}],"usage":{"prompt_tokens":9,"total_tokens":9}}`,
  )
}
