import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    /** A folder for files that tests make once and copy; deleted after the run. */
    readonly preparedFolder: string
  }
}

/** Makes the folder. */
export default function setUp(project: TestProject): () => void {
  const folder = mkdtempSync(join(project.config.env['TMPDIR'] ?? tmpdir(), 'sluice-prepared-'))
  project.provide('preparedFolder', folder)
  return () => rmSync(folder, { recursive: true, force: true })
}
