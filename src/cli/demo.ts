import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { startSimulator } from '@sluice/simulator'
import { demoYaml } from './demo-config.ts'
import { type DataFolderLock, waitAndLockDataFolder } from '../store/data-folder.ts'
import { loadConfig } from './load-config.ts'
import { loadEnvironment } from './load-environment.ts'
import { printStartFailure, runGateway } from './start.ts'

/**
 * `sluice demo`: the gateway with simulated upstreams. Its data is deleted at the end unless DATA_DIR is set.
 */
export async function demo(): Promise<number> {
  const givenDir = process.env['DATA_DIR']
  const dataDir = givenDir ?? mkdtempSync(join(tmpdir(), 'sluice-demo-'))
  let folder: DataFolderLock
  try {
    // Locked before anything is written, because another gateway may be using the folder.
    folder = await waitAndLockDataFolder(dataDir, 'gateway')
  } catch (error) {
    return printStartFailure(error)
  }
  const simulator = await startSimulator()
  try {
    const config = join(dataDir, 'demo.yaml')
    rmSync(config, { force: true })
    writeFileSync(config, demoYaml(simulator), { mode: 0o600, flag: 'wx' })
    const environment = loadEnvironment({ config }, { ...process.env, DATA_DIR: dataDir })
    const loaded = environment && loadConfig(environment)
    return loaded ? await runGateway(loaded, { folder }) : 1
  } finally {
    if (givenDir === undefined) rmSync(dataDir, { recursive: true, force: true })
    await simulator.close()
  }
}
