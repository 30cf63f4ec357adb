import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { startSimulator } from '@sluice/simulator'
import type { Environment } from '../config/environment.ts'
import { sqlitePath } from '../domain/database-url.ts'
import { demoYaml } from './demo-config.ts'
import { type DataFolderLock, waitAndLockDataFolder } from '../store/data-folder.ts'
import { loadConfig } from './load-config.ts'
import { loadEnvironment } from './load-environment.ts'
import { printStartFailure, runGateway } from './start.ts'

/**
 * `sluice demo`: the gateway with simulated upstreams. Its data is deleted at the end unless DATA_DIR is set.
 */
export async function demo(): Promise<number> {
  const givenDir = process.env['DATA_DIR']?.trim() || undefined
  const dataDir = givenDir ?? mkdtempSync(join(tmpdir(), 'sluice-demo-'))
  try {
    // The demo has its own configuration file.
    const variables = { ...process.env, DATA_DIR: dataDir, GATEWAY_CONFIG: undefined }
    const environment = loadEnvironment({}, variables)
    return environment ? await runDemo(environment) : 1
  } finally {
    if (givenDir === undefined) rmSync(dataDir, { recursive: true, force: true })
  }
}

async function runDemo(environment: Environment): Promise<number> {
  const { dataDir, databaseUrl } = environment
  let folder: DataFolderLock
  try {
    // Locked before anything is written, because another gateway may be using the folder.
    folder = await waitAndLockDataFolder(dataDir, 'gateway', sqlitePath(databaseUrl))
  } catch (error) {
    return printStartFailure(error)
  }
  const simulator = await startSimulator()
  try {
    const configFile = join(dataDir, 'demo.yaml')
    rmSync(configFile, { force: true })
    writeFileSync(configFile, demoYaml(simulator), { mode: 0o600, flag: 'wx' })
    const loaded = loadConfig({ ...environment, configFile })
    return loaded ? await runGateway(loaded, { folder }) : 1
  } finally {
    await simulator.close()
  }
}
