import { expect, test } from 'vitest'
import { CallWindow } from './call-window.ts'

/** Lets calls begin until the window is full; their number. */
function fill(window: CallWindow): number {
  let begun = 0
  for (; window.isOpen; begun++) window.callBegan()
  return begun
}

/** Lets calls end, and others begin as far as the window allows; the number of those that began. */
function replace(window: CallWindow, calls: number): number {
  let begun = 0
  for (let i = 0; i < calls; i++) {
    window.callEnded()
    begun += fill(window)
  }
  return begun
}

test('one call begins for each that ends, except for one in sixteen', () => {
  const window = new CallWindow()
  fill(window)
  window.addIdleTime(8)
  fill(window)
  expect(replace(window, 160)).toBe(150)
})

test('two more calls begin for each idle millisecond', () => {
  const window = new CallWindow()
  fill(window)
  window.addIdleTime(5)
  expect(fill(window)).toBe(10)
  window.addIdleTime(0.25)
  expect(fill(window)).toBe(1)
  window.addIdleTime(0.25)
  expect(fill(window)).toBe(0)
})

test('sixteen calls may be under way however busy the loop is', () => {
  const window = new CallWindow()
  fill(window)
  window.addIdleTime(8)
  fill(window)
  replace(window, 10_000)
  expect(replace(window, 100)).toBe(100)
  for (let i = 0; i < 16; i++) window.callEnded()
  expect(fill(window)).toBe(16)
})

test('at most 16 more calls begin after an idle time, however long', () => {
  const window = new CallWindow()
  fill(window)
  window.addIdleTime(10_000)
  expect(fill(window)).toBe(16)
})

test('calls that began beyond the window count against its growth', () => {
  const window = new CallWindow()
  fill(window)
  for (let i = 0; i < 10; i++) window.callBegan()
  window.addIdleTime(5)
  expect(window.isOpen).toBe(false)
  window.addIdleTime(0.5)
  expect(fill(window)).toBe(1)
})

test('a reopened window admits 16 more calls, however many are under way', () => {
  const window = new CallWindow()
  fill(window)
  window.reopen()
  expect(fill(window)).toBe(16)
})

test('as many calls may be under way as twelve milliseconds are enough for', () => {
  const window = new CallWindow()
  fill(window)
  window.setCost(0.1)
  expect(fill(window)).toBe(120 - 16)
  window.setCost(2)
  expect(window.isOpen).toBe(false)
  expect(replace(window, 120)).toBe(16)
})
