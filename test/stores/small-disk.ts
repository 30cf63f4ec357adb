import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { onTestFinished } from 'vitest'

/** A separate file system, unmounted after the test. */
export interface SmallDisk {
  readonly path: string
  /** Makes the file system read-only. */
  makeReadOnly(): void
}

/**
 * Whether this process may mount a file system. Where results are counted (`CI=true`), root must be able to.
 */
export const CAN_MOUNT = process.getuid?.() === 0 && (process.env['CI'] === 'true' || triesToMount())

if (!CAN_MOUNT) console.log('tests of full and read-only disks are left out: only root can mount one')

/** Mounts a file system of this number of bytes. */
export function mountSmallDisk(bytes: number): SmallDisk {
  const path = mount(bytes)
  onTestFinished(() => unmount(path))
  return {
    path,
    makeReadOnly: () => void execFileSync('/bin/mount', ['-o', 'remount,ro', path], { stdio: 'pipe' }),
  }
}

function triesToMount(): boolean {
  try {
    unmount(mount(65_536))
    return true
  } catch {
    return false
  }
}

function mount(bytes: number): string {
  const path = mkdtempSync(join(tmpdir(), 'sluice-disk-'))
  execFileSync('/bin/mount', ['-t', 'tmpfs', '-o', `size=${bytes},mode=0700`, 'sluice-test', path], {
    stdio: 'pipe',
  })
  return path
}

function unmount(path: string): void {
  execFileSync('/bin/umount', ['--lazy', path], { stdio: 'pipe' })
  rmdirSync(path)
}
