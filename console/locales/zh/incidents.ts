import type { Texts } from '../en.ts'

/** Texts in simplified Chinese: channels in trouble. */
export const incidents: Texts['incidents'] = {
  title: '故障',
  sentence: (state, share, since) => `${state}：自 ${since} 起，${share} 的调用失败。`,
  calls: (rescued, lost) => `${rescued} 次由其他渠道完成，${lost} 次失败。`,
  cause: (words) => `最近失败：${words}。`,
  hide: '隐藏',
  refusedFile: '配置文件被拒绝',
  refusedConfiguration: (mistake, mistakes) =>
    `修改后的配置文件被拒绝，仍在使用原来的配置：${mistake}${mistakes > 1 ? `（共 ${mistakes} 处错误）` : ''}。下次启动将会失败。`,
}
