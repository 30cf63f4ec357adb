import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { call } from '../fixtures/client.ts'
import {
  commandReading,
  inGatewayState,
  GATEWAY_STATES,
  type Outcome,
  SECRET,
  untilItRuns,
} from '../fixtures/command.ts'
import { ROOT, user } from '../fixtures/configuration.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'

let gateway: RunningGateway
beforeAll(async () => {
  gateway = await startGateway({
    config: { users: [ROOT, user(2, 'ann', [])] },
    env: { GATEWAY_SECRET: SECRET },
  })
})
afterAll(() => gateway.discard())

const password = (input: string, ...args: string[]): Promise<Outcome> =>
  commandReading(input, gateway, 'user', 'password', ...args)

const logIn = async (given: string): Promise<number> =>
  (await call(gateway.url, { username: 'ann', password: given }, { path: '/api/user/login' })).status

describe.each(GATEWAY_STATES)('sluice user password, %s', (manner) => {
  const secret = `pässword of ${manner}`

  test('sluice user password reads the password from standard input, and the user can log in with it', async () => {
    const [plain, json] = await inGatewayState(
      manner,
      gateway,
      async (): Promise<[Outcome, Outcome]> => [
        await password('the one before\n', 'ann'),
        await password(`${secret}\r\n`, 'ann', '--json'),
      ],
    )
    expect(plain).toMatchObject({ code: 0, out: 'ann (id 2) has a new password.\n', err: '' })
    expect(json).toMatchObject({ code: 0, err: '' })
    expect(json.json()).toMatchObject({ id: 2, username: 'ann' })
    await untilItRuns(gateway)
    expect([await logIn(secret), await logIn('the one before')]).toEqual([200, 401])
  })

  test('a password set by sluice user password is in plain text neither in the database nor in the log', async () => {
    await gateway.stop()
    const file = readFileSync(join(gateway.dataDir, 'sluice.db'), 'latin1')
    expect(file.includes('word of while')).toBe(false)
    expect(file.includes('$argon2id$v=19$m=19456,t=2,p=1$')).toBe(true)
    expect(gateway.logs()).not.toContain('word of while')
  })
})

test.each([
  ['', 'ann', 'expected a password on standard input; it is empty'],
  ['\n', 'ann', 'expected a password on standard input; it is empty'],
  ['two\nlines of it\n', 'ann', 'expected one line on standard input, with the password alone'],
  ['7 chars\n', 'ann', 'password: expected a text of 8 to 128 characters'],
  ['a good one', 'nobody', 'there is no user "nobody"'],
])(
  'sluice user password refuses an invalid call with an error message: %j for %s',
  async (input, name, sentence) => {
    await untilItRuns(gateway)
    expect(await password(input, name)).toMatchObject({ code: 1, out: '', err: `sluice: ${sentence}\n` })
  },
)

test('sluice user password refuses a password as an argument', async () => {
  await untilItRuns(gateway)
  const { code, err } = await password('', 'ann', 'a good password')
  expect(code).toBe(1)
  expect(err).toContain('too many arguments')
})
