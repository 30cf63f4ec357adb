import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  lchownSync,
  lstatSync,
  openSync,
  statSync,
} from 'node:fs'
import { dirname } from 'node:path'
import process from 'node:process'

const OTHERS = 0o077

/**
 * Creates a file that only its owner can open (`giveToFolderOwner`). For an existing file, does the same as
 * `keepPrivate`. Throws if the file cannot be written. An existing file is not opened, because closing it again
 * would release this process's locks on it.
 */
export function createPrivateFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600))
    giveToFolderOwner(path)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
    keepPrivate(path)
    accessSync(path, constants.R_OK | constants.W_OK)
  }
}

/** Gives a file that root has created to the owner of its folder: the account that the gateway runs as must be able to open it. */
export function giveToFolderOwner(path: string): void {
  if (process.geteuid?.() !== 0) return
  const { uid, gid } = statSync(dirname(path))
  lchownSync(path, uid, gid)
}

/**
 * Denies other accounts access to a file, if it exists. Throws a sentence for the operator if it is a link or
 * not a regular file.
 */
export function keepPrivate(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (!found) return
  if (!found.isFile())
    throw new Error(`${path} is ${found.isSymbolicLink() ? 'a link' : 'not a file'}: put a file in its place`)
  const self = process.geteuid?.()
  if ((found.mode & OTHERS) !== 0 && (self === found.uid || self === 0)) chmodSync(path, found.mode & ~OTHERS)
}
