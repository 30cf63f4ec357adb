import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Collector, startCollector } from '../../../test/fixtures/collector.ts'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, startConsoleStage } from '../console-stage.ts'

describe.skipIf(withoutBrowser())('telemetry in the settings of the console', () => {
  let stage: ConsoleStage
  let collector: Collector
  beforeAll(async () => {
    collector = await startCollector()
    stage = await startConsoleStage('filled', {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_METRIC_EXPORT_INTERVAL: '200',
      OTEL_BSP_SCHEDULE_DELAY: '100',
    })
  })
  afterAll(async () => {
    await stage?.close()
    await collector?.stop()
  })

  test('the settings page shows the number of exported traces and metrics, and why the last export failed', async () => {
    await stage.call('scripted')
    await expect.poll(() => collector.spans().length).toBeGreaterThan(0)
    const page = await stage.open('root', '/settings')
    const region = page.getByRole('region', { name: 'Telemetry' })
    await region.scrollIntoViewIfNeeded()
    const row = region.getByRole('row', { name: /Traces/ })
    await row.getByText(`${new URL(collector.url).host} (http/protobuf)`).waitFor()
    expect(Number(await row.getByRole('cell').nth(2).textContent())).toBeGreaterThan(0)
    await region.getByRole('row', { name: /Metrics/ }).waitFor()
    collector.answer(403)
    await stage.call('scripted')
    await row.getByText('The last attempt failed: status 403').waitFor()
    await page.close()
  })

  test('the telemetry section of the settings is in Chinese for a Chinese browser', async () => {
    const page = await stage.open('root', '/settings', { locale: 'zh-CN' })
    const region = page.getByRole('region', { name: '遥测' })
    await region.scrollIntoViewIfNeeded()
    await region.getByRole('row', { name: /追踪/ }).waitFor()
    await page.close()
  })
})
