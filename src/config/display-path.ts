import { isAbsolute, relative } from 'node:path'
import process from 'node:process'

/** The path of a file relative to the current folder, or absolute if it is outside. */
export function displayPath(file: string): string {
  const path = relative(process.cwd(), file)
  return path.startsWith('..') || isAbsolute(path) ? file : path
}
