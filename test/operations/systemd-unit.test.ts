import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { expect, onTestFinished, test } from 'vitest'
import { rootFile } from './compose-file.ts'
import { isInstalled } from './tutorial-run.ts'

const UNIT = rootFile('deploy/systemd/sluice.service')
const ROOT = join(import.meta.dirname, '../..')

/** The values of a setting of the unit. */
function values(name: string): string[] {
  return [...UNIT.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value = '']) => value)
}

test('the systemd unit gives the gateway its writable folders, and time to end its calls', () => {
  const folders = Object.fromEntries(values('Environment').map((text) => text.split('=')))
  expect(folders).toEqual({
    DATA_DIR: `/var/lib/${values('StateDirectory')[0]}`,
    NODE_COMPILE_CACHE: `/var/cache/${values('CacheDirectory')[0]}`,
  })
  expect(values('WorkingDirectory')).toEqual([`/etc/${values('ConfigurationDirectory')[0]}`])
  const drain = rootFile('docs/configuration.md').match(/`drain_timeout` \| `(\d+)s`/)?.[1]
  expect(Number(values('TimeoutStopSec')[0])).toBeGreaterThan(Number(drain) + 5)
})

test('the systemd unit removes the rights that the gateway does not need', () => {
  expect(values('User')).toEqual(['sluice'])
  expect(values('NoNewPrivileges')).toEqual(['yes'])
  expect(values('ProtectSystem')).toEqual(['strict'])
  expect(values('ProtectHome')).toEqual(['yes'])
  expect(values('CapabilityBoundingSet')).toEqual([''])
  expect(values('StateDirectoryMode')).toEqual(['0700'])
})

test('systemd-analyze accepts every setting of the systemd unit', ({ skip }) => {
  skip(!isInstalled('systemd-analyze'), 'systemd-analyze is not installed')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-unit-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'sluice.service')
  writeFileSync(file, UNIT.replaceAll('/opt/sluice', ROOT).replace('/usr/bin/node', process.execPath))
  const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' })
  expect({ status, said: stdout + stderr }).toEqual({ status: 0, said: '' })
})
