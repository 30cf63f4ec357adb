import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { familyDatabase } from '../../../test/stores/family-database.ts'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, startConsoleStage } from '../console-stage.ts'

const OLD_KEY = 'AbCdEfGhIjKlMnOpQrStUvWxYz0123456789abcdefghijkl'

describe.skipIf(withoutBrowser())('an import in the browser', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
  })
  afterAll(async () => {
    await stage?.close()
  })

  test('the import page previews a new-api database and imports it; its old keys work at once', async () => {
    const source = await familyDatabase('new-api', 'SQLite')
    await source.insert('options', { key: 'ModelRatio', value: '{"old-model":1}' })
    await source.insert('options', { key: 'CompletionRatio', value: '{"old-model":2}' })
    await source.insert('users', {
      id: 70,
      username: 'olga',
      password: '',
      role: 1,
      status: 1,
      group: 'default',
      quota: 5_000_000,
      used_quota: 0,
    })
    await source.insert('tokens', {
      id: 90,
      user_id: 70,
      key: OLD_KEY,
      status: 1,
      name: 'laptop',
      expired_time: -1,
      unlimited_quota: true,
      remain_quota: 0,
      used_quota: 0,
    })
    await source.insert('channels', {
      id: 1,
      type: 1,
      key: 'k',
      status: 1,
      name: 'imported',
      base_url: stage.upstream.baseUrl('scripted'),
      models: 'old-model',
      group: 'default',
    })
    await source.insert('options', { key: 'GroupGroupRatio', value: '{}' })
    const page = await stage.open('root', '/settings')
    await page.getByRole('link', { name: 'Import from another gateway' }).click()
    await page.getByRole('heading', { level: 1, name: 'Import', exact: true }).waitFor()
    await page.getByLabel('Database or configuration').setInputFiles(source.place)
    await page.getByRole('button', { name: 'Read file' }).click()
    const report = page.getByRole('table', { name: 'Report' })
    await report.getByRole('row', { name: /^User olga Carries over/ }).waitFor()
    await report
      .getByRole('row', { name: /^Option GroupGroupRatio Does not carry over a group has one ratio/ })
      .waitFor()
    expect(await stage.call('old-model', `sk-${OLD_KEY}`)).toBe(401)

    await page.getByRole('button', { name: 'Apply', exact: true }).click()
    await page.getByText('Imported. Old keys work now.').waitFor()
    expect(await stage.call('old-model', `sk-${OLD_KEY}`)).toBe(200)
    await page.getByRole('link', { name: 'Look at the channels' }).click()
    await page.getByRole('table', { name: 'Channels' }).getByText('imported', { exact: true }).waitFor()
    expect(stage.complaints).toEqual([])
    await page.close()
  })

  test('the import page accepts a LiteLLM configuration, and refuses other files with a message', async () => {
    const page = await stage.open('root', '/import', { locale: 'zh-CN' })
    const file = page.getByLabel('数据库或配置文件')
    await file.setInputFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('no gateway') })
    await page.getByRole('button', { name: '读取文件' }).click()
    await page.getByRole('alert').getByText('notes.txt is neither a SQLite database').waitFor()
    const yaml =
      'model_list: [{ model_name: a, litellm_params: { model: openai/a, api_key: os.environ/ABSENT } }]'
    await file.setInputFiles({ name: 'config.yaml', mimeType: 'text/yaml', buffer: Buffer.from(yaml) })
    await page.getByRole('button', { name: '读取文件' }).click()
    await page.getByRole('table', { name: '报告' }).getByText('ABSENT').waitFor()
    expect(await page.getByRole('alert').count()).toBe(0)
    await page.close()
  })
})
