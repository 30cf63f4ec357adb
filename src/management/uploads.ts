import { readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Milliseconds for which a file that was uploaded for an import is kept. */
const KEPT_MS = 30 * 60_000

/** Maximum number of files uploaded for imports that are kept. */
const MAX_KEPT = 3

const PREFIX = '.import-'
/** Matches the id of an upload. */
export const UPLOAD_ID = /^[0-9a-f]{32}$/

/**
 * Path of an upload in the data folder. It follows from the id, so that an upload is also found after a
 * restart.
 */
export function uploadPath(folder: string, id: string): string {
  return join(folder, `${PREFIX}${id}`)
}

/** Whether an upload is still kept. */
export function isUploadKept(folder: string, id: string): boolean {
  const found = statSync(uploadPath(folder, id), { throwIfNoEntry: false })
  return found !== undefined && found.mtimeMs > Date.now() - KEPT_MS
}

export function removeUpload(folder: string, id: string): void {
  rmSync(uploadPath(folder, id), { force: true })
}

/** Removes the oldest uploads, to make room for a new one. */
export function removeOldestUploads(folder: string): void {
  removeUploads(folder, MAX_KEPT - 1)
}

/** Removes expired uploads. */
export function removeOldUploads(folder: string): void {
  removeUploads(folder, MAX_KEPT)
}

function removeUploads(folder: string, kept: number): void {
  const files = readdirSync(folder)
    .filter((name) => name.startsWith(PREFIX) && UPLOAD_ID.test(name.slice(PREFIX.length)))
    .map((name) => join(folder, name))
    .map((path) => ({ path, atMs: statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0 }))
    .toSorted((a, b) => b.atMs - a.atMs)
  const old = Date.now() - KEPT_MS
  for (const [index, { path, atMs }] of files.entries())
    if (index >= kept || atMs < old) rmSync(path, { force: true })
}
