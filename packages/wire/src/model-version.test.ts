import { describe, expect, test } from 'vitest'
import { claudeVersion, geminiVersion, gptVersion, isSince, kimiVersion } from './model-capabilities.ts'

describe('the version of a Claude model', () => {
  test.each([
    ['claude-3-opus-20240229', 3, 0],
    ['claude-3-5-sonnet-20241022', 3, 5],
    ['claude-3.7-sonnet', 3, 7],
    ['claude-sonnet-4-20250514', 4, 0],
    ['claude-opus-4-1-20250805', 4, 1],
    ['claude-sonnet-4-5', 4, 5],
    ['anthropic/claude-opus-4.7', 4, 7],
    ['us.anthropic.claude-haiku-4-5-20251001-v1:0', 4, 5],
    ['claude-haiku-4-5@20251001', 4, 5],
    ['claude-opus-4-10', 4, 10],
    ['claude-opus-5', 5, 0],
    ['claude-opus-4-7-thinking', 4, 7],
    ['anthropic/claude-4.7-opus', 4, 7],
    ['team-opus-4-7', 4, 7],
  ])('the version of %s is %i.%i', (name, major, minor) => {
    expect(claudeVersion(name)).toEqual({ major, minor })
  })

  test.each(['claude-instant', 'demo-claude', 'claude', 'my-deployment'])('%s has no version', (name) => {
    expect(claudeVersion(name)).toBeUndefined()
  })
})

describe('the version of a GPT model', () => {
  test.each([
    ['gpt-3.5-turbo', 3, 5],
    ['gpt-35-turbo-16k', 3, 5],
    ['gpt-4o-mini', 4, 0],
    ['gpt-4.1-nano', 4, 1],
    ['gpt-4-0613', 4, 0],
    ['gpt-5.2-codex', 5, 2],
    ['gpt-6-sol', 6, 0],
    ['openai/gpt-5', 5, 0],
  ])('the version of %s is %i.%i', (name, major, minor) => {
    expect(gptVersion(name)).toEqual({ major, minor })
  })

  test.each(['gpt-oss-120b', 'chatgpt-4o-latest', 'o3'])('%s has no version', (name) => {
    expect(gptVersion(name)).toBeUndefined()
  })
})

test('the version of a Gemini model is after its family', () => {
  expect(geminiVersion('models/gemini-2.5-pro')).toEqual({ major: 2, minor: 5 })
  expect(geminiVersion('gemini-3-pro-preview')).toEqual({ major: 3, minor: 0 })
  expect(geminiVersion('gemini-flash-latest')).toBeUndefined()
})

test('the version of a Kimi model is after its letter, and a date is not a version', () => {
  expect(kimiVersion('kimi-k2.6')).toEqual({ major: 2, minor: 6 })
  expect(kimiVersion('kimi-k2.7-code-highspeed')).toEqual({ major: 2, minor: 7 })
  expect(kimiVersion('moonshotai/kimi-k3')).toEqual({ major: 3, minor: 0 })
  expect(kimiVersion('kimi-k2-0905-preview')).toEqual({ major: 2, minor: 0 })
  expect(kimiVersion('kimi-latest')).toBeUndefined()
})

test('versions are compared by their major, then by their minor number', () => {
  expect(isSince({ major: 4, minor: 7 }, 4, 7)).toBe(true)
  expect(isSince({ major: 5, minor: 0 }, 4, 7)).toBe(true)
  expect(isSince({ major: 4, minor: 10 }, 4, 7)).toBe(true)
  expect(isSince({ major: 4, minor: 6 }, 4, 7)).toBe(false)
})
