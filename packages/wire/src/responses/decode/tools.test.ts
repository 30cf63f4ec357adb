import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ToolFunctionNames } from './tools.ts'

describe('names of tools as functions', () => {
  test('a tool that is converted to a function keeps its name, with its namespace as a prefix', () => {
    const names = new ToolFunctionNames()
    expect(names.nameOf({ type: 'function', name: 'read' })).toBe('read')
    expect(names.nameOf({ type: 'function', name: 'read', namespace: 'mcp__files' })).toBe('mcp__files__read')
    expect(names.nameOf({ type: 'custom', name: 'write', namespace: 'a b' })).toBe('a_b__write')
  })

  test('two converted tools whose function names would be equal get different names, the same each time', () => {
    const names = new ToolFunctionNames()
    expect(names.nameOf({ type: 'function', name: 'c', namespace: 'a__b' })).toBe('a__b__c')
    expect(names.nameOf({ type: 'function', name: 'b__c', namespace: 'a' })).toBe('a__b__c_2')
    expect(names.nameOf({ type: 'function', name: 'c', namespace: 'a__b' })).toBe('a__b__c')
    expect(names.nameOf({ type: 'custom', name: 'apply_patch' })).toBe('apply_patch')
    expect(names.nameOf({ type: 'apply_patch', name: 'apply_patch' })).toBe('apply_patch_2')
  })

  test('the function names of converted tools are valid in other dialects, and never collide', () => {
    const tool = fc.record({
      type: fc.constantFrom('function' as const, 'custom' as const),
      name: fc.string({ maxLength: 70 }),
      namespace: fc.string({ maxLength: 70 }),
    })
    fc.assert(
      fc.property(fc.uniqueArray(tool, { selector: (one) => JSON.stringify(one), maxLength: 8 }), (tools) => {
        const names = new ToolFunctionNames()
        const given = tools.map((one) => names.nameOf(one))
        expect(new Set(given).size).toBe(given.length)
        for (const name of given) expect(name).toMatch(/^[\w-]{1,64}$/)
        const again = new ToolFunctionNames()
        expect(tools.map((one) => again.nameOf(one))).toEqual(given)
      }),
    )
  })
})
