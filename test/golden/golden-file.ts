import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import process from 'node:process'
import { expect } from 'vitest'
import { prettyJson } from './pretty-json.ts'

/** Missing files are written, for a person to check. */
const WRITES_MISSING = process.env['UPDATE_GOLDEN'] === '1'

/** Compares JSON texts, ignoring white space. */
export function compareJson(file: string, json: string): void {
  writeMissing(file, prettyJson(json))
  expect(prettyJson(json)).toBe(prettyJson(readFileSync(file, 'utf8')))
}

/** Compares texts. */
export function compareText(file: string, text: string): void {
  writeMissing(file, text)
  expect(text).toBe(readFileSync(file, 'utf8'))
}

function writeMissing(file: string, text: string): void {
  if (!WRITES_MISSING || existsSync(file)) return
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}
