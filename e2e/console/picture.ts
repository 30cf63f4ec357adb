/**
 * Makes docs/console.png, the picture of the console on the README: `node e2e/console/picture.ts`, after
 * `npm run console`. The usage of three months is made up.
 */
import { join } from 'node:path'
import { startConsoleStage } from './console-stage.ts'
import { addManyCalls } from './many-calls.ts'

const TARGET = join(import.meta.dirname, '../../docs/console.png')

const stage = await startConsoleStage()
try {
  await stage.gateway.stop()
  await addManyCalls(stage.gateway.dataDir, { keys: 40, calls: 20_000 })
  await stage.gateway.restart()
  const page = await stage.open('admin', '/usage')
  await page.waitForLoadState('networkidle')
  // The charts are drawn when their data are there.
  await page.waitForTimeout(1_500)
  await page.screenshot({ path: TARGET })
} finally {
  await stage.close()
}
