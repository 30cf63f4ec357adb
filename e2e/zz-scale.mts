import { startConsoleStage } from './console/console-stage.ts'
import { addManyCalls } from './console/many-calls.ts'
const n = Number(process.argv[2] ?? 1000000),
  k = Number(process.argv[3] ?? 10000)
const stage = await startConsoleStage()
await stage.declare('options: { max_user_tokens: 20000 }')
await stage.gateway.stop()
let t = Date.now()
await addManyCalls(stage.gateway.dataDir, { keys: k, calls: n })
console.log('filled in', Date.now() - t)
await stage.gateway.restart()
const page = await stage.open('root', '/account')
const cdp = await page.context().newCDPSession(page)
for (const path of [
  '/usage?period=90d',
  '/usage?period=90d',
  '/usage?period=90d&by=key',
  '/logs',
  '/logs?period=30d',
  '/keys',
  '/keys?q=key%20999',
  '/',
]) {
  await cdp.send('Performance.enable')
  await page.goto(path, { waitUntil: 'networkidle' })
  const res = await page.evaluate(() =>
    performance
      .getEntriesByType('resource')
      .filter((r) => r.name.includes('/api/'))
      .map(
        (r) => `${r.name.slice(r.name.indexOf('/api'))} ${Math.round(r.startTime)}+${Math.round(r.duration)}`,
      ),
  )
  const m = Object.fromEntries(
    (await cdp.send('Performance.getMetrics')).metrics.map((x) => [x.name, x.value]),
  )
  console.log(path, res, {
    script: m.ScriptDuration,
    layout: m.LayoutDuration,
    style: m.RecalcStyleDuration,
    task: m.TaskDuration,
    nodes: m.Nodes,
  })
}
await stage.close()
