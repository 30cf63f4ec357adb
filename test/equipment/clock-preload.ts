import { readFileSync } from 'node:fs'
import process from 'node:process'

// Loaded into the program under test before all other modules: shifts `Date` by the number of seconds that
// the file CLOCK_FILE contains at that moment.

const FILE = process.env['CLOCK_FILE'] ?? ''
const RealDate = Date

function movedNow(): number {
  return RealDate.now() + Number(readFileSync(FILE, 'utf8')) * 1000
}

class MovedDate extends RealDate {
  constructor(...given: unknown[]) {
    if (given.length === 0) super(movedNow())
    else super(...(given as [string]))
  }

  static override now(): number {
    return movedNow()
  }
}

globalThis.Date = MovedDate as DateConstructor
