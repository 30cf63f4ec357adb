import { expect, onTestFinished, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call } from '../fixtures/client.ts'
import { ROOT } from '../fixtures/configuration.ts'
import { startFixture } from '../fixtures/fixture.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'
import { filesWithErrors } from '../recipes/compiled-copy.ts'
import { ENGINES } from '../stores/engines.ts'
import { addedCode, databaseOf } from '../recipes/recipe.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }

const END_OF_TABLE = '} as const satisfies Record<string, OptionRow>'
const ROW = {
  file: 'src/domain/options.ts',
  text: END_OF_TABLE,
  by: addedCode('add-an-option', 'ts') + END_OF_TABLE,
}

interface Option {
  readonly key: string
  readonly value: string
  readonly managed: boolean
}

test.each(ENGINES)(
  'one new row in the table of options adds an option to gateway.yaml, the API, its description and audit log, on $name',
  async (engine) => {
    const env = await databaseOf(engine)
    const copy = await patchedProgram([ROW])
    onTestFinished(() => copy.discard())
    const users = [ROOT]
    const fixture = await startFixture(() => ({ users }), { root: copy.root, env })
    onTestFinished(() => fixture.close())
    const { gateway } = fixture
    const option = async (): Promise<Option | undefined> => {
      const { data } = await manage<Option[]>(gateway.url, ROOT_ACCOUNT, 'GET /api/option/')
      return data.find(({ key }) => key === 'report_days')
    }
    const put = async (value: string) =>
      (await manage(gateway.url, ROOT_ACCOUNT, 'PUT /api/option/', { key: 'report_days', value })).status

    expect(await option()).toMatchObject({ value: '7', managed: false })
    expect(await put('366')).toBe(400)
    expect(await put('30')).toBe(200)
    expect(await option()).toMatchObject({ value: '30', managed: false })
    await gateway.apply({ users, options: { report_days: 90 } })
    expect(await option()).toMatchObject({ value: '90', managed: true })

    const { text } = await call(gateway.url, undefined, { method: 'GET', path: '/openapi.json' })
    const { schema } = JSON.parse(text).paths['/api/option/'].put.requestBody.content['application/json']
    expect(schema.properties.key.enum).toContain('report_days')
    const value = { type: ['integer', 'string'], minimum: 1, maximum: 365, default: 7 }
    expect(schema.anyOf).toContainEqual({ properties: { key: { const: 'report_days' }, value } })

    const { data } = await manage<{ items: { via: string; changes: object[] }[] }>(
      gateway.url,
      ROOT_ACCOUNT,
      'GET /api/audit?kind=option&object=report_days',
    )
    expect(data.items.map(({ via, changes }) => ({ via, changes }))).toEqual([
      { via: 'file', changes: [{ field: 'value', before: null, after: 90 }] },
      { via: 'api', changes: [{ field: 'value', before: null, after: '30' }] },
    ])
  },
)

test('an option that is added to the table of options lacks only its two translated texts in the console', async () => {
  const text = `    usage_log_days: [`
  const by = `    report_days: ['Days of reports', 'For operators.'],\n${text}`
  const english = { file: 'console/locales/en/settings.ts', text, by }
  expect(await filesWithErrors([ROW, english], 'report_days')).toEqual(['console/locales/zh/settings.ts'])
})
