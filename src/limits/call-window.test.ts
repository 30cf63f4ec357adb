import { expect, test } from 'vitest'
import { CallWindow } from './call-window.ts'

/** So many begin before it is full. */
function fill(window: CallWindow): number {
  let begun = 0
  for (; window.isOpen; begun++) window.begun()
  return begun
}

/** A call begins in the place of each of so many that end, as far as the window lets it; those that began. */
function pass(window: CallWindow, calls: number): number {
  let begun = 0
  for (let i = 0; i < calls; i++) {
    window.ended()
    begun += fill(window)
  }
  return begun
}

test('one begins for each that ends, but for one in sixteen', () => {
  const window = new CallWindow()
  fill(window)
  window.idle(8)
  fill(window)
  expect(pass(window, 160)).toBe(150)
})

test('two more begin for each idle millisecond', () => {
  const window = new CallWindow()
  fill(window)
  window.idle(5)
  expect(fill(window)).toBe(10)
  window.idle(0.25)
  expect(fill(window)).toBe(1)
  window.idle(0.25)
  expect(fill(window)).toBe(0)
})

test('sixteen may be under way however busy the loop is', () => {
  const window = new CallWindow()
  fill(window)
  window.idle(8)
  fill(window)
  pass(window, 10_000)
  expect(pass(window, 100)).toBe(100)
  for (let i = 0; i < 16; i++) window.ended()
  expect(fill(window)).toBe(16)
})

test('no more than 16 are saved up in an idle time', () => {
  const window = new CallWindow()
  fill(window)
  window.idle(10_000)
  expect(fill(window)).toBe(16)
})

test('those that began beyond it are made good for first', () => {
  const window = new CallWindow()
  fill(window)
  for (let i = 0; i < 10; i++) window.begun()
  window.idle(5)
  expect(window.isOpen).toBe(false)
  window.idle(0.5)
  expect(fill(window)).toBe(1)
})

test('where nobody waits, 16 more may begin, however many are under way', () => {
  const window = new CallWindow()
  fill(window)
  window.open()
  expect(fill(window)).toBe(16)
})
