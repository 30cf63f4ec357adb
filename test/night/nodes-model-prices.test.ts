import { describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { ROOT } from '../fixtures/configuration.ts'
import { SHARED, setNodes } from '../nodes/fixture.ts'

const ROUNDS = 10
const AS_ROOT = { id: 1, accessToken: ROOT.access_token }

interface Model {
  readonly model: string
  readonly version: string
}

describe.each(SHARED)('two nodes on $name', (engine) => {
  test("of two changes of a model's price from the same version, one is refused, even if they are made on two nodes", async () => {
    const { gateways } = await setNodes(engine, 2, () => ({ users: [ROOT] }))
    const [first, second] = gateways.map(({ url }) => url)
    const put = async (url = '', input: number, version?: string) => {
      const body = { model: 'm', price: { input, output: 1 }, version }
      const { status } = await manage(url, AS_ROOT, 'PUT /api/models/price', body)
      return status
    }
    expect(await put(first, 1)).toBe(200)
    for (let round = 0; round < ROUNDS; round += 1) {
      const versionAt = async (url = ''): Promise<string | undefined> => {
        const { data } = await manage<Model[]>(url, AS_ROOT, 'GET /api/models')
        return data.find(({ model }) => model === 'm')?.version
      }
      // Both nodes have received the last price.
      await expect.poll(async () => (await versionAt(first)) === (await versionAt(second))).toBe(true)
      const version = await versionAt(first)
      const answers = await Promise.all([put(first, 2 + round, version), put(second, 100 + round, version)])
      expect(answers.toSorted(), `round ${round}`).toEqual([200, 409])
    }
  })
})
