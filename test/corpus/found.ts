import { readdirSync, readFileSync } from 'node:fs'
import { BOTH, type Case } from './case.ts'

const FOLDER = new URL('found/', import.meta.url)

/**
 * Bodies that broke something before, kept as found: `found/<what it broke>.body`; ◊ stands for the model.
 */
export function found(): Case[] {
  return readdirSync(FOLDER).map((file) => {
    const text = readFileSync(new URL(file, FOLDER), 'utf8')
    return {
      name: `found: ${file}`,
      protocols: BOTH,
      outcome: 'either',
      body: (model) => text.replaceAll('◊', model),
    }
  })
}
